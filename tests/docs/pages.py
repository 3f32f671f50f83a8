"""What a page of Markdown consists of: headings with their anchors, prose, links and fenced blocks."""
import re

IMAGE = r"!\[[^\]]*\]\(([^)\s]+)\)"
FENCE = re.compile(r"^ *(```+)\s*(.*)$")


class Block:
    """A fenced block: the words behind the fence, the line of the fence (from 1), its text."""

    def __init__(self, info, line):
        self.info, self.line, self.lines = info.split(), line, []

    @property
    def text(self):
        return "".join(line + "\n" for line in self.lines)


class Page:
    def __init__(self, text):
        self.lines = text.splitlines()
        self.blocks, self.headings, self.prose, self.tables = [], [], [], []
        self._read()

    def _read(self):
        block = fence = paragraph = None
        for number, line in enumerate(self.lines, 1):
            found = FENCE.match(line)
            if block is not None:
                if found and found[1].startswith(fence) and not found[2]:
                    block = None
                else:
                    block.lines.append(line)
                continue
            if found:
                block, fence, paragraph = Block(found[2], number), found[1], None
                self.blocks.append(block)
            elif heading := re.match(r"^(#+) +(.*?) *#*$", line):
                self.headings.append((len(heading[1]), heading[2], number))
                paragraph = None
            elif line.lstrip().startswith("|"):
                self.tables.append((number, line))
                paragraph = None
            elif not line.strip():
                paragraph = None
            elif paragraph is None or re.match(r"^ *(?:[*+-]|\d+\.) ", line): # an item of a list begins a new one
                paragraph = [number, re.sub(r"^ *(?:[*+-]|\d+\.) +", "", line)]
                self.prose.append(paragraph)
            else:
                paragraph[1] += " " + line.strip()

    def anchors(self):
        """As GitHub makes them of headings; a repeated one gets a number."""
        seen, anchors = {}, []
        for _, text, _ in self.headings:
            slug = re.sub(r"[^\w\- ]", "", shown(text).lower()).replace(" ", "-")
            anchors.append(f"{slug}-{seen[slug]}" if slug in seen else slug)
            seen[slug] = seen.get(slug, 0) + 1
        return anchors

    def links(self):
        """(line, target, is it an image) of every link outside of fenced blocks and code."""
        for number, text in self.prose + self.tables + [(line, text) for _, text, line in self.headings]:
            text = re.sub(r"`[^`]*`", "", text)
            for target in re.findall(IMAGE, text): # also one that is a link's text
                yield number, target, True
            for target in re.findall(r"\[[^\[\]]*\]\(([^)\s]+)[^)]*\)", re.sub(IMAGE, "", text)):
                yield number, target, False

    def code(self):
        """(line, text) of code in the prose and in tables."""
        for number, text in self.prose + self.tables:
            for code in re.findall(r"``(.+?)``|`([^`]+)`", text):
                yield number, "".join(code)

    def sentences(self):
        """(line where its paragraph begins, sentence) of the prose."""
        for number, text in self.prose:
            if text.startswith(CONTENTS):
                continue
            for sentence in re.split(r"(?<=[.!?])(?<!\.\.\.)[\"'”)*_]*\s+(?=\S)", plain(text)):
                if sentence.strip():
                    yield number, sentence


CONTENTS = "On this page: "


def contents(page):
    """The line that lists a page's sections."""
    sections = [(text, anchor) for (level, text, _), anchor in zip(page.headings, page.anchors()) if level == 2]
    return CONTENTS + " · ".join(f"[{shown(text)}](#{anchor})" for text, anchor in sections)


def plain(text):
    """Prose without its marks: code is one word, a link is its text, an image is nothing."""
    text = re.sub(r"``.*?``|`[^`]*`", lambda code: CODE.sub("_", code[0].strip("`")) or "_", text)
    return shown(text)


def shown(text):
    """As a reader sees it, but for the marks of code."""
    return re.sub(r"\[([^\[\]]*)\]\([^)]*\)", r"\1", re.sub(IMAGE, "", text)).replace("*", "")


CODE = re.compile(r"[^\w-]+")


def words(sentence):
    return [word for word in sentence.split() if re.search(r"\w", word)]
