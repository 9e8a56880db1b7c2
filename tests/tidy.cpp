#include "tests/tidy.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>

#include "model/text_lines.hpp"

namespace fs = std::filesystem;

namespace remat {
namespace {

/// Who may include whom (docs/architecture.md). A room may always include itself; what is missing
/// here (`cli`, `tests`) may include every room.
const std::map<std::string, std::set<std::string>> may_include = {
    {"model", {}},
    {"traces", {"model"}},
    {"schedules", {"model"}},
    {"sim", {"model", "schedules", "traces"}},
    {"properties/invariants", {"model", "traces"}},
    {"properties", {"model", "traces", "schedules", "sim", "properties/invariants"}},
    {"gpu_validate", {"model", "traces", "properties/invariants"}},
};

/// All that `sim` may see of `schedules`: it knows no protocol and no schedule by name.
const std::set<std::string> sim_may_include_of_schedules = {
    "schedules/action_list.hpp",     "schedules/action_table.hpp", "schedules/offload_policy.hpp",
    "schedules/pipeline_action.hpp", "schedules/protocol.hpp",     "schedules/registry.hpp",
    "schedules/save_units.hpp"};

const std::regex include_line(R"(^\s*#\s*include\s*["<]([^">]+)[">])");

struct BannedWord {
  const char* name;
  std::regex pattern;
};

/// What makes two runs differ. `x.time()` is somebody's member and none of libc's business.
const std::vector<BannedWord> banned_words = {
    {"unordered container", std::regex(R"(\bunordered_)")},
    {"pointer as key", std::regex(R"(\b(map|set|hash|less)<[^,<>]*\*\s*[,>])")},
    {"random_device", std::regex(R"(\brandom_device\b)")},
    {"rand", std::regex(R"((^|[^.>\w])s?rand\()")},
    {"std::…_distribution", std::regex(R"(\bstd::\w+_distribution\b)")},
    {"shuffle", std::regex(R"(\b(std|ranges)::shuffle\b)")},
    {"wall clock", std::regex(R"(\b(system|steady|high_resolution)_clock\b)")},
    {"time", std::regex(R"((^|[^.>\w])time\()")},
    {"thread id", std::regex(R"(\bthis_thread::get_id\b)")},
    {"locale", std::regex(R"(\bsetlocale\b)")},
};

/// The one file that may look at the time: budgets of campaigns end by it.
constexpr std::string_view the_clock = "cli/stopwatch.cpp";

const std::regex shared_place(R"(\btemp_directory_path\b)");

const std::regex vague_name(R"((^|_)(utils?|common|helpers?|types|manager)$)");

constexpr std::size_t columns_max = 100;
constexpr std::size_t lines_max = 400;

bool is_cpp(const std::string& path) {
  return path.ends_with(".cpp") || path.ends_with(".hpp") || path.ends_with(".cu");
}

std::string room_of(const std::string& path) {
  const std::string invariants = "properties/invariants";
  return path.starts_with(invariants + "/") ? invariants : path.substr(0, path.find('/'));
}

/// A raw string is data (a trace, a schema): neither its words nor its width are code. Its line
/// breaks stay, so that line numbers do.
std::string without_raw_strings(const std::string& text) {
  static const std::regex opening(R"re((^|\W)R"([^\s()\\"]{0,16})\()re");
  std::string code;
  auto done = text.begin();
  for (std::smatch open; std::regex_search(done, text.end(), open, opening);) {
    const std::string closing = ")" + open[2].str() + "\"";
    const auto data = open[0].second;
    const auto close = std::search(data, text.end(), closing.begin(), closing.end());
    code.append(done, data);
    std::copy_if(data, close, std::back_inserter(code), [](char c) { return c == '\n'; });
    done = close;
  }
  return code.append(done, text.end());
}

/// Characters, not bytes: every byte of UTF-8 but the continuations begins one.
std::size_t width_of(const std::string& line) {
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

bool has_word(const std::string& text, const std::string& word) {
  return std::regex_search(text, std::regex("\\b" + word + "\\b"));
}

class Review {
 public:
  explicit Review(const SourceTree& tree) : tree_(tree) {}

  std::vector<std::string> complaints() {
    bool has_invariants = false;
    for (const auto& [path, text] : tree_) {
      if (is_cpp(path)) review_file(path, text);
      if (path.ends_with(".cpp")) review_listing(path);
      if (is_invariant(path, text)) {
        has_invariants = true;
        review_invariant(path);
      }
    }
    // Without the mark that they are found by, the rule about them would hold of nothing.
    if (const std::string registry = "properties/invariants/registry.cpp";
        !has_invariants && tree_.count(registry) == 1) {
      complain(registry, 1, "no header beside it says /// Invariant");
    }
    return complaints_;
  }

 private:
  void complain(const std::string& path, std::size_t line, const std::string& rule) {
    complaints_.push_back(path + ":" + std::to_string(line) + ": " + rule);
  }

  void review_file(const std::string& path, const std::string& text) {
    const auto room = room_of(path);
    if (may_include.count(room) == 0 && room != "cli" && room != "tests") {
      complain(path, 1, "'" + room + "' is no room of this house");
    }
    if (std::regex_search(fs::path(path).stem().string(), vague_name)) {
      complain(path, 1, "a file is named after the one concept it holds");
    }
    const auto lines = lines_of(without_raw_strings(text));
    if (lines.size() > lines_max) {
      complain(path, lines_max + 1, "a file past 400 lines holds two things");
    }
    if (path.ends_with(".hpp") && std::count(lines.begin(), lines.end(), "#pragma once") != 1) {
      complain(path, 1, "a header has one #pragma once");
    }
    for (std::size_t i = 0; i < lines.size(); ++i)
      review_line(path, room, i + 1, lines[i]);
  }

  void review_line(const std::string& path, const std::string& room, std::size_t number,
                   const std::string& line) {
    if (width_of(line) > columns_max) complain(path, number, "a line has at most 100 columns");
    std::smatch include;
    if (std::regex_search(line, include, include_line)) {
      const bool quoted = line.find('"') != std::string::npos;
      review_include(path, room, number, include[1].str(), quoted);
    }
    if (room == "tests") {
      review_shared_place(path, number, line);
      return;
    }
    const auto code = line.substr(0, line.find("//"));
    for (const auto& banned : banned_words) {
      if (path == the_clock && std::string_view(banned.name) == "wall clock") continue;
      if (std::regex_search(code, banned.pattern)) {
        complain(path, number, std::string("not deterministic: ") + banned.name);
      }
    }
  }

  /// Tests run side by side: two that write under one name in a shared folder spoil each other.
  void review_shared_place(const std::string& path, std::size_t number, const std::string& line) {
    if (std::regex_search(line, shared_place) && !path.ends_with("/temporary_folder.hpp")) {
      complain(path, number, "a test writes into a TemporaryFolder of its own");
    }
  }

  void review_include(const std::string& path, const std::string& room, std::size_t number,
                      const std::string& header, bool quoted) {
    const bool ours = tree_.count(header) == 1;
    if (quoted != ours) {
      complain(path, number,
               ours ? "our own headers stand in quotes, not in <>"
                    : "no file \"" + header + "\" (from the repository root; others' stand in <>)");
    }
    const auto allowed = may_include.find(room);
    if (!ours || allowed == may_include.end()) return;
    const auto used = room_of(header);
    if (used != room && allowed->second.count(used) == 0) {
      complain(path, number, room + " may not include " + used);
    } else if (room == "sim" && used == "schedules" &&
               sim_may_include_of_schedules.count(header) == 0) {
      complain(path, number, "sim includes the interfaces and the registry of schedules only");
    }
  }

  /// Listed in the CMakeLists.txt nearest above it; a file that is not is never compiled.
  void review_listing(const std::string& path) {
    for (auto folder = fs::path(path).parent_path();; folder = folder.parent_path()) {
      const auto cmake = tree_.find((folder / "CMakeLists.txt").string());
      if (cmake != tree_.end()) {
        const auto name = fs::path(path).lexically_relative(folder).string();
        if (!lists(cmake->second, name)) complain(path, 1, "not listed in " + cmake->first);
        return;
      }
      if (folder.empty()) break;
    }
    complain(path, 1, "no CMakeLists.txt above it");
  }

  static bool lists(const std::string& cmake, const std::string& source) {
    for (const auto& line : lines_of(cmake)) {
      auto words = line.substr(0, line.find('#'));
      std::replace_if(
          words.begin(), words.end(), [](char c) { return c == '(' || c == ')'; }, ' ');
      std::istringstream in(words);
      for (std::string word; in >> word;) {
        if (word == source) return true;
      }
    }
    return false;
  }

  /// An invariant's header says `/// Invariant`, and its code stands beside it.
  bool is_invariant(const std::string& path, const std::string& text) const {
    return path.starts_with("properties/invariants/") && path.ends_with(".hpp") &&
           tree_.count(fs::path(path).replace_extension(".cpp").string()) == 1 &&
           text.find("/// Invariant") != std::string::npos;
  }

  void review_invariant(const std::string& path) {
    const auto name = fs::path(path).stem().string();
    for (const auto* document : {"docs/trace-format.md", "README.md"}) {
      const auto page = tree_.find(document);
      if (page == tree_.end() || !has_word(page->second, name)) {
        complain(path, 1, std::string("invariant not named in ") + document);
      }
    }
  }

  const SourceTree& tree_;
  std::vector<std::string> complaints_;
};

}  // namespace

SourceTree read_source_tree(const std::string& root) {
  SourceTree tree;
  const std::set<std::string> extensions = {".cpp", ".hpp", ".cu", ".md"};
  for (auto at = fs::recursive_directory_iterator(root); at != fs::end(at); ++at) {
    const auto name = at->path().filename().string();
    if (name.starts_with(".") || (at.depth() == 0 && name == "build")) {
      if (at->is_directory()) at.disable_recursion_pending();
    } else if (extensions.count(at->path().extension().string()) == 1 || name == "CMakeLists.txt") {
      std::ifstream in(at->path(), std::ios::binary);
      tree[at->path().lexically_relative(root).string()] =
          std::string(std::istreambuf_iterator<char>(in), {});
    }
  }
  return tree;
}

std::vector<std::string> tidy_complaints(const SourceTree& tree) {
  return Review(tree).complaints();
}

}  // namespace remat
