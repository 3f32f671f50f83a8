"""What a choice file must say of a config, for scripts that write such files."""
import re
import subprocess


def revision_of(deepgen, arch, problem, template, config):
    """The revision that this deepgen's template has for the config."""
    text = template + " " + " ".join(f"{name}={value}" for name, value in config.items())
    done = subprocess.run([deepgen, "space", "explain", "--arch", arch, "--problem", problem, "--config", text], check=True,
                          capture_output=True, text=True)
    return int(re.search(rf"^revision (\d+) of {template}$", done.stdout, re.M).group(1))
