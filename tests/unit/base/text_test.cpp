// Texts that come from files: what is a name, and how texts are written into other languages.
#include "base/text/text.h"

#include "base/json/json.h"
#include "base/kernel/device.h"
#include "base/text/visible_output.h"
#include "tests/fuzz/c_skeleton.h"

#include <gtest/gtest.h>
#include <iostream>
#include <random>
#include <sstream>

namespace deepgen::text_test {
namespace {

TEST(Text, NamesHaveNoControlCharacters) {
  for (const char* good : {"", "NVIDIA H100 80GB HBM3", "AMD Ryzen\xe2\x84\xa2",
                           "*/ \\ \" ?"
                           "?/",
                           "\xf0\x9f\x98\x80"})
    EXPECT_EQ(why_no_name(good), "") << good;
  for (const char* bad :
       {"a\nb", "\x1b[2J", "\x7f", "\xc2\x9b", "\xe2\x80\xa8", "\xe2\x80\xae", "\xe2\x81\xa6", "\xef\xbb\xbf",
        "\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x84", "\xc3"})
    EXPECT_NE(why_no_name(bad), "") << bad;
  EXPECT_EQ(why_no_name(std::string(200, 'x')), "");
  EXPECT_NE(why_no_name(std::string(201, 'x')), "");
  EXPECT_NE(why_no_name(std::string("a\0b", 3)), "");
}

TEST(Text, WordsAndHashes) {
  for (const char* good : {"sm_90a", "mma_sync", "sramecc+", "xnack-", "sse4.1", "7"})
    EXPECT_TRUE(is_word(good)) << good;
  for (const char* bad : {"", "a b", "a=b", "a*/", "a\"", "\xc3\xa9", "a:b"})
    EXPECT_FALSE(is_word(bad)) << bad;
  EXPECT_FALSE(is_word(std::string(65, 'x')));
  EXPECT_TRUE(is_sha256(std::string(64, 'a')));
  for (const std::string& bad :
       {std::string(), std::string(63, 'a'), std::string(64, 'A'), std::string(64, 'x')})
    EXPECT_FALSE(is_sha256(bad));
}

TEST(Text, VisibleShowsWhatATerminalWouldObey) {
  EXPECT_EQ(visible("a\tb\nc \xc3\xa9"), "a\tb\nc \xc3\xa9");
  EXPECT_EQ(visible("\x1b[31m\r\x07\x7f\xc2\x9b\xe2\x80\xae"),
            "\\u001b[31m\\u000d\\u0007\\u007f\\u009b\\u202e");
  EXPECT_EQ(visible("\xff\xc3"), "\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(visible(visible("\x1b\xff")), visible("\x1b\xff"));
  EXPECT_EQ(dump_json({{"x", "\x7f\xe2\x80\xae"}}), "{\"x\":\"\\u007f\\u202e\"}");
  EXPECT_EQ(parse_json(dump_json({{"x", "\x7f\xe2\x80\xae"}}), "x")["x"], "\x7f\xe2\x80\xae")
      << "the same value";
}

TEST(Text, OutputIsVisibleAsLongAsItIsAskedFor) {
  std::ostringstream sink;
  std::streambuf* before = std::cout.rdbuf(sink.rdbuf());
  {
    const VisibleOutput output;
    std::cout << "\x1b[2J" << '\x07' << "\xe2" << "\x84" << "\xa2" << 5 << std::endl << "\xc3";
  }
  std::cout << "\x1b";
  std::cout.rdbuf(before);
  EXPECT_EQ(sink.str(), "\\u001b[2J\\u0007\xe2\x84\xa2"
                        "5\n\xef\xbf\xbd\x1b");
}

/// Of pieces that end comments, literals and lines.
std::string hostile(std::mt19937& random) {
  static const char* const pieces[] = {"*/",
                                       "/*",
                                       "//",
                                       "\\",
                                       "\"",
                                       "'",
                                       "?"
                                       "?/",
                                       "?",
                                       "?"
                                       "?'",
                                       "\n",
                                       "\r",
                                       "\x1b",
                                       "a",
                                       "0",
                                       "\xff",
                                       "\xc3\xa9",
                                       "#error",
                                       "%s"};
  std::string text;
  for (size_t n = random() % 8; n > 0; --n) text += pieces[random() % std::size(pieces)];
  return text;
}

TEST(Text, NothingLeavesACommentOrALiteral) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    const std::string text = hostile(random);
    const std::string comments =
                          "/* " + in_comment(text) + " */ int a;\n// " + in_comment(text) + "\nint b;\n",
                      literals = "const char x[] = " + c_literal(text) + ";\nint c;\n";
    for (bool trigraphs : {false, true}) {
      EXPECT_EQ(c_skeleton(comments, trigraphs), "  int a;\n\nint b;\n") << comments;
      EXPECT_EQ(c_skeleton(literals, trigraphs), "const char x[] = \"\";\nint c;\n") << literals;
    }
  }
  EXPECT_EQ(in_comment("a \\ \n"), "a \\  .");
  EXPECT_EQ(in_comment("NVIDIA H100 (80GB)"), "NVIDIA H100 (80GB)");
  EXPECT_EQ(c_literal("a\"b\\c\n\x01"
                      "2\xc3"),
            "\"a\\\"b\\\\c\\n\\0012\\303\"");
}

TEST(Text, AnArchIsNoMoreThanThat) {
  for (const char* good : {"sm_80", "sm_90a", "sm_100f"}) EXPECT_GT(compute_capability(good), 0) << good;
  for (const char* bad :
       {"sm_", "sm_90 */", "sm_90aa", "sm_-90", "sm_90\n", "sm_99999999999999999999", "xsm_90"})
    EXPECT_FALSE(is_gpu(bad)) << bad;
}

} // namespace
} // namespace deepgen::text_test
