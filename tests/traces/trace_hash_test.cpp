#include "traces/trace_hash.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/traces/trace_text.hpp"
#include "traces/reader.hpp"

namespace remat {
namespace {

std::string hash_of(const std::vector<std::string>& parts) {
  TraceHash hash;
  for (const std::string& part : parts)
    hash.add(part);
  return hash.digits();
}

std::string hash_of_trace(const std::string& lines) {
  return trace_hash(trace_in(with_header(lines)));
}

}  // namespace

TEST_CASE("a hash is 32 lower-case hexadecimal digits", "[traces]") {
  for (const std::string& digits : {hash_of({}), hash_of({"a"}), trace_hash(Trace{})}) {
    CHECK(digits.size() == 32);
    CHECK(digits.find_first_not_of("0123456789abcdef") == std::string::npos);
  }
}

TEST_CASE("an empty trace has the same hash on every machine", "[traces]") {
  CHECK(trace_hash(Trace{}) == "243f6a8885a308d313198a2e03707344");
}

TEST_CASE("equal bytes have equal hashes, and one changed byte differs", "[traces]") {
  const std::string text = "the quick brown fox jumps over the lazy dog";
  CHECK(hash_of({text}) == hash_of({text}));
  std::set<std::string> hashes = {hash_of({text})};
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const char other : {'\0', '!', '\xff'}) {
      std::string changed = text;
      changed[at] = other;
      hashes.insert(hash_of({changed}));
    }
  }
  CHECK(hashes.size() == 1 + 3 * text.size());
}

TEST_CASE("a hash depends on lengths, zeros and borders of what is added", "[traces]") {
  std::set<std::string> hashes;
  for (std::size_t n = 0; n < 40; ++n)
    CHECK(hashes.insert(hash_of({std::string(n, '\0')})).second);
  CHECK(hash_of({"ab", "c"}) != hash_of({"a", "bc"}));
  CHECK(hash_of({"abc"}) != hash_of({"abc", ""}));
  CHECK(hash_of({"abc"}) != hash_of({}));
}

TEST_CASE("a hash depends on the order of what is added", "[traces]") {
  CHECK(hash_of({"a", "b"}) != hash_of({"b", "a"}));
  CHECK(hash_of({"12345678abcdefgh"}) != hash_of({"abcdefgh12345678"}));
}

TEST_CASE("equal traces have equal hashes, whatever the order of fields and the blanks",
          "[traces]") {
  const std::string one = "{\"seq\":1,\"kind\":\"note\",\"msg\":\"x\",\"rank\":0}\n";
  CHECK(hash_of_trace(one) == hash_of_trace(one));
  CHECK(hash_of_trace(one) ==
        hash_of_trace("{ \"rank\": 0, \"msg\":\"x\", \"kind\":\"note\",\"seq\":1 }\n"));
}

TEST_CASE("traces that differ in a value, in a field or in their order have other hashes",
          "[traces]") {
  const auto note = [](int seq, const std::string& fields) {
    return "{\"seq\":" + std::to_string(seq) + ",\"kind\":\"note\"" + fields + "}\n";
  };
  const std::vector<std::string> traces = {
      "",
      note(1, ""),
      note(2, ""),
      note(1, ",\"rank\":0"),
      note(1, ",\"rank\":1"),
      note(1, ",\"rank\":null"),
      note(1, ",\"msg\":\"a\""),
      note(1, ",\"msg\":\"b\""),
      note(1, ",\"msg\":\"a\"") + note(2, ",\"msg\":\"b\""),
      note(1, ",\"msg\":\"b\"") + note(2, ",\"msg\":\"a\""),
      note(1, ",\"x\":1"),
      note(1, ",\"x\":1.0"),
      note(1, "") + note(2, ""),
  };
  std::set<std::string> hashes;
  for (const std::string& trace : traces) {
    CAPTURE(trace);
    CHECK(hashes.insert(hash_of_trace(trace)).second);
  }
}

TEST_CASE("a recording read twice has one hash", "[traces]") {
  const std::string path = REMATSIM_SOURCE_DIR "/traces/recorded/05a_nested.jsonl.gz";
  CHECK(trace_hash(read_trace(path)) == trace_hash(read_trace(path)));
}

}  // namespace remat
