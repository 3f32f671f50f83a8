"""Holds the pages and the folders to what they promise: check.py style|links|rooms SOURCE

style: README.md and the pages below docs/ have sentences of at most 25 words, lines of at most 110 columns and at most 250 lines
(README.md: 120); those of docs/ have a list of their sections. A section with measured numbers names their raw results, on pages of MEASURED.
links: every relative link, anchor and image of the repository's pages exists, no page below docs/ is left out of its table of
contents, no page names a source that is not there, and no other file a page.
rooms: no folder has more files directly in it than somebody can take in, but for folders of recorded data."""
import collections
import pathlib
import re
import subprocess
import sys

from pages import CONTENTS, Page, contents, words

SOURCES = "base|benchmarks|cmake|docs|examples|generator|measure|runtime|scripts|templates|tests"
MOST_WORDS, MOST_COLUMNS, MOST_LINES, MOST_README, MOST_UNLISTED = 25, 110, 250, 120, 3
MOST_FILES = 28 # in a folder; about 25 are what is wanted. tests/unit/arrows.py has the same number for sources
RECORDED = re.compile(r"benchmarks/(?:.+/)?results(?:/|$)") # raw results: a file a row


# Pages of what nobody can look up in the sources: times of hardware.
MEASURED = ("docs/design/amx.md", "docs/threads.md")
NUMBER = re.compile(r"\b\d[\d.,]* ?(?:ns|µs|us|cycles|(?:G|T)FLOP/s|GB/s|times as|%)(?!\w)|\| [^|]*\b(?:ns|µs|us|cycles|microseconds) *\|", re.IGNORECASE)
RAW = re.compile(r"`benchmarks/[\w./-]*results/[\w.-]+`")


def check_measured(name, page):
    """That the raw results are there, check_sources() sees."""
    found, starts = [], [number for level, _, number in page.headings if level == 2]
    for begin, end in zip([1, *starts], [*starts, len(page.lines) + 1]):
        lines = page.lines[begin - 1:end - 1]
        numbers = [begin + at for at, line in enumerate(lines) if NUMBER.search(line)]
        if numbers and not RAW.search("\n".join(lines)):
            found.append(f"{name}:{numbers[0]}: a measured number, and the section names no raw results in `benchmarks/.../results/`")
    return found


def check_style(name, text):
    """Messages; none for a page as it should be. Rows of a table cannot be folded, so their width is free."""
    page, found = Page(text), []
    most = MOST_LINES if name.startswith("docs/") else MOST_README
    if len(page.lines) > most:
        found.append(f"{name}: {len(page.lines)} lines, more than {most}; split it by what readers want")
    rows = {number for number, _ in page.tables}
    for number, line in enumerate(page.lines, 1):
        if len(line) > MOST_COLUMNS and number not in rows:
            found.append(f"{name}:{number}: {len(line)} columns, more than {MOST_COLUMNS}")
    for number, sentence in page.sentences():
        if len(words(sentence)) > MOST_WORDS:
            found.append(f"{name}:{number}: {len(words(sentence))} words, more than {MOST_WORDS}: {sentence.strip()}")
    if name in MEASURED:
        found += check_measured(name, page)
    if not name.startswith("docs/"):
        return found
    listed = next((text for _, text in page.prose if text.startswith(CONTENTS)), "")
    sections = sum(level == 2 for level, _, _ in page.headings)
    if (listed or sections > MOST_UNLISTED) and listed != contents(page):
        found.append(f"{name}: the list of sections should be\n{contents(page)}")
    return found


def check_links(root, files):
    """`files`: paths below root. Links to other hosts are not followed: a test needs no network."""
    found, pages = [], {}

    def page(path):
        if path not in pages:
            pages[path] = Page(path.read_text())
        return pages[path]

    for file in (f for f in files if f.suffix == ".md"):
        for number, target, image in page(root / file).links():
            if "://" in target or target.startswith("mailto:"):
                continue
            name, _, anchor = target.partition("#")
            path = (root / file.parent / name).resolve() if name else root / file
            kind = "image" if image else "link"
            if not path.exists() or not path.is_relative_to(root):
                found.append(f"{file}:{number}: the {kind} {target} leads nowhere")
            elif anchor and path.suffix == ".md" and anchor not in page(path).anchors():
                found.append(f"{file}:{number}: {target}: that page has no such heading")
    index = root / "docs/README.md"
    listed = {(index.parent / target.partition("#")[0]).resolve() for _, target, _ in page(index).links()} if index.exists() else set()
    for path in sorted((root / "docs").rglob("*.md")):
        if path != index and path not in listed:
            found.append(f"docs/README.md does not list {path.relative_to(root / 'docs')}")
    return found + check_sources(root, files) + check_mentions(root, files)


def check_sources(root, files):
    """Pages name sources as `templates/NAME.cpp`: these are there. Patterns, placeholders and what a build makes are not looked for."""
    found = []
    for file in files:
        if file.parts[0] == "docs" and file.suffix == ".md" or len(file.parts) == 1 and file.suffix == ".md" and file.stem != "CHANGELOG":
            for number, line in Page((root / file).read_text()).code():
                for name in re.findall(rf"(?<![\w./-])(?:{SOURCES})/[\w./-]+(?![\w./*<-])", line):
                    if not (root / name).exists() and not (root / name.rstrip(".")).exists():
                        found.append(f"{file}:{number}: there is no {name}")
    return found


def check_mentions(root, files):
    """Comments and messages name pages as docs/NAME.md."""
    found = []
    for file in files:
        if file.suffix in (".cpp", ".h", ".cmake", ".txt", ".py", ".sh", ".js") and "tests/docs" not in str(file):
            for number, line in enumerate((root / file).read_text(errors="replace").splitlines(), 1):
                for word in line.replace('"', " ").replace("`", " ").split():
                    name = word.strip("(),;:.'")
                    if name.startswith("docs/") and name.endswith(".md") and not (root / name).exists():
                        found.append(f"{file}:{number}: there is no {name}")
    return found


def check_rooms(files):
    """`files`: paths below root."""
    count = collections.Counter(file.parent.as_posix() for file in files)
    return [f"{folder} has {count[folder]} files, more than {MOST_FILES}: put them into folders by what they are for"
            for folder in sorted(count) if count[folder] > MOST_FILES and not RECORDED.match(folder)]


def tracked(root, which="-co"):
    """`which`: also those that are new (-co), or those that git knows alone (-c)."""
    try: # what an editor or a build has left there is nobody's page
        listed = subprocess.run(["git", "-C", root, "ls-files", which, "--exclude-standard", "-z"], capture_output=True, text=True, check=True)
        names = filter(None, listed.stdout.split("\0"))
    except (OSError, subprocess.CalledProcessError): # an archive of the sources
        names = (path.relative_to(root) for path in root.rglob("*") if path.is_file() and "build" not in path.parts)
    return sorted(path for path in map(pathlib.Path, names) if (root / path).is_file())


def main():
    what, root = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    if what == "links":
        found = check_links(root, tracked(root))
    elif what == "rooms":
        found = check_rooms(tracked(root, "-c")) # what somebody's run wrote beside them is no room
    else:
        paths = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
        found = [message for path in paths for message in check_style(str(path.relative_to(root)), path.read_text())]
    print("\n".join(found) or f"docs.{what}: nothing to say")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
