"""follow.py stops at what a page gets wrong."""
import pathlib
import tempfile
import unittest

from follow import Failure, follow

DEMO = "scripts/install-deps.sh\ncmake --preset release\ncmake --install build --prefix x >/dev/null\n"


def fence(info, text):
    return f"```{info}\n{text}\n```\n"


class Follow(unittest.TestCase):
    def follow(self, text, **environment):
        with tempfile.TemporaryDirectory() as folder:
            return follow(text, DEMO, pathlib.Path(folder), environment)

    def fails(self, text, message, **environment):
        with self.assertRaisesRegex(Failure, message):
            self.follow(text, **environment)

    def test_a_page_that_is_right(self):
        page = ("Put `a.txt` there.\n" + fence("text a.txt", "one") + fence("sh", "cat a.txt\necho two $WHO three") + fence("text", "one\ntwo ... three")
                + fence("sh checkout", 'cmake --install build --prefix "$HOME/d"\nexport WHO=x'))
        self.assertEqual(self.follow(page, WHO="me"), {"file": 1, "run": 1, "output": 1, "checkout": 1})

    def test_a_command_that_fails(self):
        self.fails(fence("sh", "true\nfalse\ntrue"), "line 1: the commands failed with 1")

    def test_an_output_that_is_another(self):
        self.fails(fence("sh", "echo 1 wrong") + fence("text", "0 wrong"), "line 4: .* not printed here: 0 wrong")

    def test_an_output_in_another_order(self):
        self.fails(fence("sh", "echo b; echo a") + fence("text", "a\nb"), "not printed here: b")

    def test_the_dots_of_an_output_are_no_pattern_beside_three_of_them(self):
        self.fails(fence("sh", "echo axc") + fence("text", "a.c"), "not printed here")

    def test_a_file_that_the_text_does_not_name(self):
        self.fails(fence("cpp main.cpp", "int main() {}"), "does not say that this is main.cpp")

    def test_a_block_that_nobody_follows(self):
        self.fails(fence("cpp", "int main() {}"), "line 1: a block that nobody follows")
        self.fails(fence("", "x"), "a block that nobody follows")

    def test_a_command_that_ci_does_not_run(self):
        self.fails(fence("sh checkout", "cmake --preset debug"), "demo.sh does not run")
        self.fails(fence("sh checkout", "export DEEPGEN=x"), "does not set DEEPGEN")


if __name__ == "__main__":
    unittest.main()
