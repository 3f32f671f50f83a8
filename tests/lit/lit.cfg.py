# lit's configuration; CMakeLists.txt passes the paths.
import os

import lit.formats

config.name = "deepgen"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".test"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = lit_config.params["work"]
config.substitutions.append(("%deepgen", lit_config.params["deepgen"]))
config.substitutions.append(("%FileCheck", lit_config.params["filecheck"]))
config.recursiveExpansionLimit = 4  # %{dump} of a test is made of other substitutions
