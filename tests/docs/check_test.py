"""The checks of the pages find what they are for, and nothing in pages that are as they should be."""
import pathlib
import tempfile
import unittest

from check import MOST_FILES, check_links, check_rooms, check_style
from pages import Page

LONG = "word " * 25


class Style(unittest.TestCase):
    def found(self, text, *parts):
        messages = check_style("docs/p.md", text)
        self.assertEqual(len(messages), len(parts), messages)
        for part, message in zip(parts, messages):
            self.assertIn(part, message)

    def test_a_good_page(self):
        self.found("# A page\n\n" + "word " * 12 + "\n" + "word " * 12 + "end.\nAnother sentence; `" + "code " * 9 + "` is one word.\n")

    def test_a_sentence_of_26_words(self):
        self.found("# A page\n\n" + "word " * 13 + "\n" + "word " * 12 + "end.\n", "p.md:3: 26 words")

    def test_a_long_item_of_a_list(self):
        self.found("* short.\n* " + "word\n  " * 25 + "end.\n", "p.md:2: 26 words")

    def test_items_and_paragraphs_end_sentences(self):
        self.found("* " + "word " * 20 + "\n* " + "word " * 20 + "\n\n" + "word " * 20 + "\n1. " + "word " * 20 + "\n")

    def test_a_long_sentence_behind_a_question_and_in_a_link(self):
        self.found("Why? [" + "word\n" * 25 + "end](x.md).\n", "26 words")

    def test_dots_that_leave_something_out_end_no_sentence(self):
        self.found("word " * 13 + "1, 2, ... " + "word\n" * 11 + "end.\n", "27 words")

    def test_code_tables_and_headings_may_be_long(self):
        self.found("# " + "w " * 30 + "\n\n```sh\n" + "w " * 50 + "\n```\n\n| " + LONG * 5 + "|\n| --- |\n")

    def test_a_wide_line_also_in_code(self):
        self.found("x" * 111 + "\n", "p.md:1: 111 columns")
        self.found("```\n" + "x" * 111 + "\n```\n", "p.md:2: 111 columns")

    def test_a_long_page(self):
        self.found("x.\n" * 251, "251 lines")
        self.assertEqual(check_style("README.md", "x.\n" * 120), [])
        self.assertEqual(len(check_style("README.md", "x.\n" * 121)), 1)

    def test_measured_numbers_have_raw_results(self):
        raw = "Raw: `benchmarks/cpu/results/x.csv`.\n"
        for number in ("A call takes 1.5 us.", "It is 7 % faster.", "It is 1.2 times as fast.", "| threads | µs |"):
            for text, count in ((number + "\n", 1), (f"{number}\n\n{raw}", 0), (f"{raw}\n## Part\n{number}\n", 1)):
                with self.subTest(text=text):
                    self.assertEqual(len(check_style("docs/threads.md", text)), count)
                    self.assertEqual(check_style("docs/p.md", text), [])
        self.assertEqual(check_style("docs/threads.md", "All waits for 60 ms at most, with 4 million operations and 2 users.\n"), [])

    def test_the_list_of_sections(self):
        sections = "".join(f"## Part {n}\n" for n in range(4))
        listed = "On this page: " + " · ".join(f"[Part {n}](#part-{n})" for n in range(4)) + "\n"
        self.found(sections, "list of sections")
        self.found(listed + sections)
        self.found(listed + sections.replace("Part 2", "Another"), "list of sections")
        self.found("On this page: [Part 0](#part-0)\n\n## Part 0\n## Part 1\n", "list of sections")


class Links(unittest.TestCase):
    def found(self, files, *parts):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder).resolve()
            for name, text in {"docs/README.md": "[a](a.md)\n", "docs/a.md": "# The first, `x_y` part\n", **files}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            names = sorted(path.relative_to(root) for path in root.rglob("*") if path.is_file())
            messages = check_links(root, names)
        self.assertEqual(len(messages), len(parts), messages)
        for part, message in zip(parts, messages):
            self.assertIn(part, message)

    def test_good_links(self):
        self.found({"b.md": "[a](docs/a.md#the-first-x_y-part), [out](https://example.org/x#y), ![p](docs/p.svg) `[code](no.md)`\n"
                            "```\n[code](no.md)\n```\n", "docs/p.svg": "<svg/>"})

    def test_a_link_that_leads_nowhere(self):
        self.found({"b.md": "Text\n[a](docs/c.md)\n"}, "b.md:1: the link docs/c.md leads nowhere")

    def test_a_link_out_of_the_repository(self):
        self.found({"b.md": "[a](../../etc)\n"}, "leads nowhere")

    def test_an_anchor_that_is_not_there(self):
        self.found({"b.md": "[a](docs/a.md#second)\n"}, "no such heading")
        self.found({"b.md": "## Here\n\n[a](#there)\n"}, "no such heading")

    def test_a_link_in_a_table_and_in_a_heading(self):
        self.found({"b.md": "| [a](x.md) |\n\n# [b](y.md)\n"}, "x.md", "y.md")

    def test_an_image_that_is_missing(self):
        self.found({"b.md": "[![p](docs/p.svg)](docs/a.md)\n"}, "the image docs/p.svg leads nowhere")

    def test_a_page_that_is_not_listed(self):
        self.found({"docs/c.md": "# C\n"}, "does not list c.md")
        self.found({"docs/deeper/c.md": "# C\n"}, "does not list deeper/c.md")

    def test_a_source_that_is_gone(self):
        self.found({"docs/a.md": "`base/x.cpp`, `base/gone.h`, `base/*.cpp`, `build/base/x`, `base/x_<y>.h`.\n| `templates/gone.cpp` |\n", "base/x.cpp": ""},
                   "a.md:1: there is no base/gone.h", "a.md:2: there is no templates/gone.cpp")

    def test_a_message_that_names_a_page_that_is_gone(self):
        self.found({"x.cpp": 'f("see \\"Files\\" in docs/gone.md");\n', "y.cmake": "# docs/a.md has it.\n"}, "x.cpp:1: there is no docs/gone.md")

    def test_anchors_are_githubs(self):
        page = Page("# A, b & `c_d`\n## 1. Two words\n## [Link](x.md) — end\n## A, b & `c_d`\n### `a.b`\n")
        self.assertEqual(page.anchors(), ["a-b--c_d", "1-two-words", "link--end", "a-b--c_d-1", "ab"])


class Rooms(unittest.TestCase):
    def found(self, folder, files):
        return check_rooms([pathlib.Path(folder, str(n)) for n in range(files)] + [pathlib.Path(folder, "deeper/x"), pathlib.Path("y")])

    def test_a_folder_with_too_many_files(self):
        self.assertEqual(self.found("tests/a", MOST_FILES), [])
        for folder in ("tests/a", "docs", "benchmarks/gpu", "benchmarks/results_of_x", "tests/results"):
            with self.subTest(folder=folder):
                said = self.found(folder, MOST_FILES + 1)
                self.assertEqual(len(said), 1, said)
                self.assertIn(f"{folder} has {MOST_FILES + 1} files", said[0])

    def test_recorded_data_is_as_much_as_there_is(self):
        for folder in ("benchmarks/gpu/results", "benchmarks/gpu/results/h200/rows", "benchmarks/results"):
            self.assertEqual(self.found(folder, 60), [])


if __name__ == "__main__":
    unittest.main()
