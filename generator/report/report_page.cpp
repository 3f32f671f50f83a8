#include "generator/report/report_page.h"

#include "base/json/json.h"

// The page's parts, as they lie in generator/page/. Bytes of the binary, so that the installed tool needs no
// file.
#define DEEPGEN_PART(name, file)                                                                             \
  asm(".pushsection .rodata, \"a\", @progbits\n"                                                             \
      ".hidden deepgen_page_" #name "\n.globl deepgen_page_" #name "\ndeepgen_page_" #name ":\n"             \
      ".incbin \"" DEEPGEN_PAGE_DIR "/" file "\"\n.byte 0\n.popsection\n");                                  \
  extern "C" const char deepgen_page_##name[];

DEEPGEN_PART(html, "page.html")
DEEPGEN_PART(style, "page.css")
DEEPGEN_PART(script, "page.js")
DEEPGEN_PART(views, "views.js")
DEEPGEN_PART(charts, "charts.js")
DEEPGEN_PART(library, "chart.umd.min.js")
DEEPGEN_PART(license, "chart.LICENSE.md")

namespace deepgen {
namespace {

/// JSON that may stand inside <script>: no text in it can end the element.
std::string in_script(const Json& json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace), safe;
  for (char c : text) safe += c == '<' ? "\\u003c" : std::string(1, c);
  return safe;
}

/// The release, less the line that names a file beside it.
std::string chart_library() {
  const std::string text = deepgen_page_library;
  return text.substr(0, text.find("//# sourceMappingURL="));
}

} // namespace

std::string report_page(const std::vector<Study>& studies) {
  const std::map<std::string, std::string> parts = {{"style", deepgen_page_style},
                                                    {"license", deepgen_page_license},
                                                    {"library", chart_library()},
                                                    {"charts", deepgen_page_charts},
                                                    {"views", deepgen_page_views},
                                                    {"script", deepgen_page_script},
                                                    {"data", in_script(report_json(studies))}};
  const std::string html = deepgen_page_html;
  std::string page;
  size_t at = 0;
  for (size_t open; (open = html.find("{{", at)) != std::string::npos;) {
    const size_t close = html.find("}}", open);
    page += html.substr(at, open - at) + parts.at(html.substr(open + 2, close - open - 2));
    at = close + 2;
  }
  return page + html.substr(at);
}

} // namespace deepgen
