#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "model/errors.hpp"
#include "tests/traces/temporary_folder.hpp"
#include "tests/traces/trace_text.hpp"
#include "traces/line_source.hpp"
#include "traces/reader.hpp"

namespace fs = std::filesystem;

namespace remat {
namespace {

const std::string expected_trace = "; expected a trace (JSON Lines, plain or gzip)";
const std::string expected_rest = "; expected the rest of the trace";

std::string header_with(const std::string& fields) {
  return R"({"seq":0,"kind":"header")" + fields + "}\n";
}

std::string notes(int n) {
  std::string lines;
  for (int i = 1; i <= n; ++i)
    lines += R"({"seq":)" + std::to_string(i) + R"(,"kind":"note","msg":"x"})" + "\n";
  return with_header(lines);
}

std::string fault_of(const std::string& path) {
  try {
    read_trace(path);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

/// What `fault_of` says to somebody who is not root: root may read everything.
std::string fault_for_nobody(const std::string& path) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    constexpr uid_t nobody = 65534;
    std::string fault = "cannot become nobody";
    if (geteuid() != 0 || setuid(nobody) == 0) fault = fault_of(path);
    const ssize_t put = write(ends[1], fault.data(), fault.size());
    _exit(put == static_cast<ssize_t>(fault.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string fault;
  char block[256];
  for (ssize_t got = 0; (got = read(ends[0], block, sizeof block)) > 0;)
    fault.append(block, static_cast<std::size_t>(got));
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  return fault;
}

}  // namespace

TEST_CASE("a file without a header of this format and version is refused", "[traces]") {
  const std::string format = R"(,"format":"ckpt-trace")";
  CHECK(fault_in("") == "t: the file is empty; expected a header line");
  CHECK(fault_in("\n") == "t:1: the line is empty; expected one event, a JSON object");
  CHECK(fault_in("{\"seq\":0,\"kind\":\"note\"}\n") ==
        "t:1: the first event is of kind 'note' (at /kind); expected a header");
  CHECK(fault_in(header_with(",\"version\":1")) ==
        "t:1: the header has no format; expected \"ckpt-trace\" (at /format)");
  CHECK(fault_in(header_with(",\"format\":null,\"version\":1")) ==
        "t:1: the header has no format; expected \"ckpt-trace\" (at /format)");
  CHECK(fault_in(header_with(",\"format\":\"chrome\",\"version\":1")) ==
        "t:1: unknown format 'chrome' (at /format); expected \"ckpt-trace\"");
  CHECK(fault_in(header_with(format)) ==
        "t:1: the header has no version; expected 1 (at /version)");
  CHECK(fault_in(header_with(format + ",\"version\":\"1\"")) ==
        "t:1: version is a string; expected an integer of at least 0 (at /version)");
  CHECK(fault_in(header_with(format + ",\"version\":2")) ==
        "t:1: version 2 is newer than this program (at /version); expected 1");
  CHECK(fault_in(header_with(format + ",\"version\":0")) ==
        "t:1: version 0 does not exist (at /version); expected 1");
  CHECK(fault_in(R"({"seq":1,"kind":"header","format":"ckpt-trace","version":1})") ==
        "t:1: the header's seq is 1 (at /seq); expected 0");
  CHECK(fault_in(with_header(R"({"seq":1,"kind":"header","format":"ckpt-trace","version":1})")) ==
        "t:2: a second header (at /kind); expected one, on the first line");
}

TEST_CASE("a path that cannot be read is named as the user named it", "[traces]") {
  const TemporaryFolder folder;
  CHECK(fault_of(folder / "missing") ==
        folder / "missing: cannot be opened: No such file or directory" + expected_trace);
  fs::create_directory(folder / "folder");
  CHECK(fault_of(folder / "folder") ==
        folder / "folder: is a directory, not a trace" + expected_trace);
  std::ofstream(folder / "empty").close();
  CHECK(fault_of(folder / "empty") == folder / "empty: the file is empty; expected a header line");
  std::ofstream(folder / "secret") << notes(1);
  REQUIRE(chmod((folder / "secret").c_str(), 0) == 0);
  REQUIRE(chmod((folder / "").c_str(), 0755) == 0);
  CHECK(fault_for_nobody(folder / "secret") ==
        folder / "secret: cannot be opened: Permission denied" + expected_trace);
}

TEST_CASE("a gzip stream that is cut off is named at the line it ends in", "[traces]") {
  const std::string whole = notes(5);
  const std::string packed = gzipped(whole);
  CHECK(fault_in(packed).empty());
  // All that was packed comes out before the trailer is missed: the file ends behind line 6.
  for (const std::size_t missing : {1U, 4U, 8U}) {
    CHECK(fault_in(packed.substr(0, packed.size() - missing)) ==
          "t:7: the gzip stream is cut off" + expected_rest);
  }
  CHECK(fault_in(packed.substr(0, 2)) == "t:1: the gzip stream is cut off" + expected_rest);
  CHECK(fault_in(packed.substr(0, 12)) == "t:1: the gzip stream is cut off" + expected_rest);
  CHECK(fault_in(packed.substr(0, 1)) ==
        "t:1: the line begins with '\\x1f'; expected one event, a JSON object");
  CHECK(fault_in(packed + packed.substr(0, 5)) ==
        "t:7: the gzip stream is cut off" + expected_rest);
}

TEST_CASE("no place to cut a trace in two goes unnoticed, but between lines", "[traces]") {
  const std::string whole = notes(20);
  for (std::size_t size = 1; size < whole.size(); ++size) {
    const bool line_ends = whole[size] == '\n' || whole[size - 1] == '\n';
    CAPTURE(size);
    CHECK(fault_in(whole.substr(0, size)).empty() == line_ends);
  }
  const std::string packed = gzipped(whole);
  for (std::size_t size = 1; size < packed.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(fault_in(packed.substr(0, size)).empty());
  }
}

TEST_CASE("a damaged gzip stream is named, after the lines before the damage", "[traces]") {
  const std::string damaged = "the gzip stream is damaged: ";
  const std::string whole = notes(5);
  std::string packed = gzipped(whole);
  packed[packed.size() - 6] ^= 1;  // in the checksum
  CHECK(fault_in(packed) == "t:7: " + damaged + "incorrect data check" + expected_rest);
  packed = gzipped(whole);
  packed[packed.size() - 1] ^= 1;  // in the length
  CHECK(fault_in(packed) == "t:7: " + damaged + "incorrect length check" + expected_rest);
  packed = gzipped(whole);
  packed[2] = 7;
  CHECK(fault_in(packed) == "t:1: " + damaged + "unknown compression method" + expected_rest);
  packed = gzipped(whole);
  packed[3] = '\xff';
  CHECK(fault_in(packed) == "t:1: " + damaged + "unknown header flags set" + expected_rest);
  packed = gzipped(whole);
  packed[10] = '\x07';  // the first block's type: there is no type 3
  CHECK(fault_in(packed) == "t:1: " + damaged + "invalid block type" + expected_rest);
  CHECK(fault_in(gzipped(whole) + "garbage") ==
        "t:7: " + damaged + "incorrect header check" + expected_rest);
}

TEST_CASE("no flipped bit of a gzip stream goes unnoticed", "[traces]") {
  const std::string packed = gzipped(notes(20));
  constexpr std::size_t header_bytes = 10;               // its time stamp and system say nothing
  const std::size_t last_block_end = packed.size() - 9;  // its last bits may be padding
  for (std::size_t at = header_bytes; at < packed.size(); ++at) {
    if (at == last_block_end) continue;
    std::string changed = packed;
    changed[at] = static_cast<char>(changed[at] ^ (1 << (at % 8)));
    CAPTURE(at);
    CHECK_FALSE(fault_in(changed).empty());
  }
}

TEST_CASE("a line that never ends is refused before it fills the memory", "[traces]") {
  const std::string endless(LineSource::line_bytes_max + (LineSource::line_bytes_max >> 1U), ' ');
  CHECK(fault_in(with_header(endless)) ==
        "t:2: the line is over 16 MiB long; expected one event a line");
}

}  // namespace remat
