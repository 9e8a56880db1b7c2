#include "model/json_place.hpp"

#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/errors.hpp"

namespace remat {
namespace {

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

/// What reading `text` as JSON says.
std::string parse_message(const std::string& text) {
  return message_of([&] { JsonDocument("f.json", text); });
}

/// What `act` says of the root of `text`.
std::string message_at(const std::string& text, const std::function<void(JsonPlace)>& act) {
  const JsonDocument document("f.json", text);
  return message_of([&] { act(JsonPlace(document)); });
}

}  // namespace

TEST_CASE("a document that is not JSON is told where", "[model]") {
  const std::string rest = "; expected one JSON object";
  CHECK(parse_message("") == "f.json:1: this is not JSON at byte 0" + rest);
  CHECK(parse_message("hello") == "f.json:1: this is not JSON at byte 0" + rest);
  CHECK(parse_message("{\n\"a\": 1,\n}") == "f.json:3: this is not JSON at byte 10" + rest);
  CHECK(parse_message("{\"a\": 1") == "f.json:1: this is not JSON at byte 7" + rest);
  CHECK(parse_message("{\n\n\"a\": [1, 2") == "f.json:3: this is not JSON at byte 13" + rest);
  CHECK(parse_message("{} {}") == "f.json:1: this is not JSON at byte 3" + rest);
  CHECK(parse_message("{\"a\": \"b") == "f.json:1: this is not JSON at byte 8" + rest);
  CHECK(parse_message("{'a': 1}") == "f.json:1: this is not JSON at byte 1" + rest);
  CHECK(parse_message("{\"a\": 01}") == "f.json:1: this is not JSON at byte 7" + rest);
  CHECK(parse_message("{\"a\": NaN}") == "f.json:1: this is not JSON at byte 6" + rest);
  CHECK(parse_message("// no\n{}") == "f.json:1: this is not JSON at byte 0" + rest);
}

TEST_CASE("bytes that are no UTF-8 are not JSON", "[model]") {
  CHECK(parse_message("{\n\"a\": \"\xff\"}") ==
        "f.json:2: this is not JSON at byte 8; expected one JSON object");
  CHECK(parse_message("{\"a\": \"\xc3\"}") ==
        "f.json:1: this is not JSON at byte 8; expected one JSON object");
  CHECK(parse_message("{\"a\": \"\\ud800\"}") ==
        "f.json:1: this is not JSON at byte 13; expected one JSON object");
  CHECK(parse_message("{\"a\": \"\xc3\xa9\"}") == "no error");
}

TEST_CASE("nesting deeper than any scenario's is an error and no crash", "[model]") {
  const auto lists = [](std::size_t n) { return std::string(n, '['); };
  const auto closed = [&](std::size_t n) { return lists(n) + std::string(n, ']'); };
  CHECK(parse_message(closed(256)) == "no error");
  CHECK(parse_message(closed(257)) ==
        "f.json:1: lists and objects are nested more than 256 deep at byte 256; expected fewer");
  CHECK(parse_message("{\"a\":\n" + closed(256) + "}") ==
        "f.json:2: lists and objects are nested more than 256 deep at byte 261; expected fewer");
  CHECK(parse_message(lists(100000)) == parse_message(closed(257)));
  CHECK(parse_message(closed(100000)) == parse_message(closed(257)));
  std::string objects;
  for (int i = 0; i < 100000; ++i)
    objects += "{\"a\":";
  CHECK(parse_message(objects) ==
        "f.json:1: lists and objects are nested more than 256 deep at byte 1280; expected fewer");
}

TEST_CASE("brackets in strings and behind each other are no nesting", "[model]") {
  CHECK(parse_message("[\"" + std::string(1000, '[') + "\", \"\\\"" + std::string(1000, '{') +
                      "\\\\\"]") == "no error");
  std::string many = "[0";
  for (int i = 0; i < 1000; ++i)
    many += ",[{}]";
  CHECK(parse_message(many + "]") == "no error");
}

TEST_CASE("a line is that on which the value's key stands, or the value where it has none",
          "[model]") {
  const JsonDocument document("f.json",
                              "\n{\n  \"a\":\n    1,\n  \"b\": [\n    2,\n\n    [3,\n 4], {\n"
                              "\"c\": \"x\\ny\"}],\n  \"d\": {\"e\":\ttrue}\r\n, \"f\": null\n}");
  CHECK(document.line_of("") == 2);
  CHECK(document.line_of("/a") == 3);
  CHECK(document.line_of("/b") == 5);
  CHECK(document.line_of("/b/0") == 6);
  CHECK(document.line_of("/b/1") == 8);
  CHECK(document.line_of("/b/1/0") == 8);
  CHECK(document.line_of("/b/1/1") == 9);
  CHECK(document.line_of("/b/2") == 9);
  CHECK(document.line_of("/b/2/c") == 10);
  CHECK(document.line_of("/d") == 11);
  CHECK(document.line_of("/d/e") == 11);
  CHECK(document.line_of("/f") == 12);
  CHECK(document.line_of("/nowhere") == 1);
}

TEST_CASE("keys with escapes are found and shown as they are", "[model]") {
  const std::string text = "{\n\"a\\\"b\": 1,\n\"\\u00e9\": 2,\n\"back\\\\slash\": 3,\n\"}\": 4}";
  CHECK(message_at(text, [](const JsonPlace& root) { root.at("a\"b").fail("x"); }) ==
        "f.json:2: x (at /a\"b)");
  CHECK(message_at(text, [](const JsonPlace& root) { root.at("\xc3\xa9").fail("x"); }) ==
        "f.json:3: x (at /\xc3\xa9)");
  CHECK(message_at(text, [](const JsonPlace& root) { root.at("back\\slash").fail("x"); }) ==
        "f.json:4: x (at /back\\slash)");
  CHECK(message_at(text, [](const JsonPlace& root) { root.at("}").fail("x"); }) ==
        "f.json:5: x (at /})");
}

TEST_CASE("where a key stands twice, its last value counts and is named", "[model]") {
  const std::string text = "{\n\"a\": 1,\n\"b\": 2,\n\"a\": 3}";
  const JsonDocument document("f.json", text);
  CHECK(JsonPlace(document).at("a").integer(0) == 3);
  CHECK(document.line_of("/a") == 4);
}

TEST_CASE("a missing key and an unknown one name their object", "[model]") {
  const std::string text = "{\n\"a\": {\"x\": 1,\n\"y\": 2}}";
  CHECK(message_at(text, [](const JsonPlace& root) { root.at("b"); }) ==
        "f.json:1: 'b' is missing; expected it here (at /)");
  CHECK(message_at(text, [](const JsonPlace& root) { root.at("a").at("z"); }) ==
        "f.json:2: 'z' is missing; expected it here (at /a)");
  CHECK(message_at(text, [](const JsonPlace& root) {
          root.at("a").allow_only({"x", "w"});
        }) == "f.json:3: unknown key 'y'; expected one of x, w (at /a/y)");
  CHECK(message_at(text, [](const JsonPlace& root) {
          root.at("a").allow_only({"y", "x"});
        }) == "no error");
}

TEST_CASE("a value of another type is shown with what was expected", "[model]") {
  const std::string text =
      "{\"s\": \"t\\n\", \"n\": 1, \"d\": 1.5, \"b\": true, \"o\": {}, \"l\": [], \"z\": null}";
  const auto text_of = [](const char* key) {
    return [key](const JsonPlace& root) { root.at(key).text(); };
  };
  CHECK(message_at(text, text_of("n")) == "f.json:1: this is 1; expected a text (at /n)");
  CHECK(message_at(text, text_of("d")) == "f.json:1: this is 1.5; expected a text (at /d)");
  CHECK(message_at(text, text_of("b")) == "f.json:1: this is true; expected a text (at /b)");
  CHECK(message_at(text, text_of("o")) == "f.json:1: this is object; expected a text (at /o)");
  CHECK(message_at(text, text_of("l")) == "f.json:1: this is array; expected a text (at /l)");
  CHECK(message_at(text, text_of("z")) == "f.json:1: this is null; expected a text (at /z)");
  CHECK(message_at(text, [](const JsonPlace& root) { root.at("s").boolean(); }) ==
        "f.json:1: this is the text \"t\\n\"; expected true or false (at /s)");
  CHECK(message_at(text, [](const JsonPlace& root) { root.at("s").items(); }) ==
        "f.json:1: this is the text \"t\\n\"; expected a list (at /s)");
  CHECK(message_at(text, [](const JsonPlace& root) { root.at("l").keys(); }) ==
        "f.json:1: this is array; expected an object (at /l)");
  CHECK(message_at(text, [](const JsonPlace& root) { root.at("n").has("a"); }) ==
        "f.json:1: this is 1; expected an object (at /n)");
  CHECK(message_at("3", [](const JsonPlace& root) { root.keys(); }) ==
        "f.json:1: this is 3; expected an object (at /)");
}

TEST_CASE("an integer is one of 64 bits that is large enough", "[model]") {
  const auto message = [](const std::string& number) {
    return message_at("[0,\n" + number + "]",
                      [](const JsonPlace& root) { root.items()[1].integer(0); });
  };
  const std::string expected = "; expected an integer of 0 or more (at /1)";
  CHECK(message("9223372036854775807") == "no error");
  CHECK(message("9223372036854775808") == "f.json:2: this is 9223372036854775808" + expected);
  CHECK(message("-1") == "f.json:2: this is -1" + expected);
  CHECK(message("-9223372036854775808") == "f.json:2: this is -9223372036854775808" + expected);
  CHECK(message("1e30") == "f.json:2: this is 1e+30" + expected);
  CHECK(message("1.5") == "f.json:2: this is 1.5" + expected);
  CHECK(message("1.0") == "f.json:2: this is 1.0" + expected);
  CHECK(message("true") == "f.json:2: this is true" + expected);
  CHECK(message("\"1\"") == "f.json:2: this is the text \"1\"" + expected);
  const JsonDocument document("f.json", "[-5]");
  CHECK(JsonPlace(document).items()[0].integer(-5) == -5);
}

TEST_CASE("lists give their values, and name the item that is of another type", "[model]") {
  const JsonDocument document("f.json", "{\"t\": [\"a\", \"b\"], \"n\": [3, 4], \"e\": []}");
  const JsonPlace root(document);
  CHECK(root.at("t").texts() == std::vector<std::string>{"a", "b"});
  CHECK(root.at("n").integers(3) == std::vector<std::int64_t>{3, 4});
  CHECK(root.at("e").texts().empty());
  CHECK(message_of([&] { root.at("n").integers(4); }) ==
        "f.json:1: this is 3; expected an integer of 4 or more (at /n/0)");
  CHECK(message_of([&] { root.at("n").texts(); }) ==
        "f.json:1: this is 3; expected a text (at /n/0)");
}

TEST_CASE("a place knows its keys in the order written, its pointer and its text", "[model]") {
  const JsonDocument document("f.json", "{\"z\": 1, \"a\": {\"l\": [ 1, {\"k\" : \"v\"} ]}}");
  const JsonPlace root(document);
  CHECK(root.keys() == std::vector<std::string>{"z", "a"});
  CHECK(root.pointer().empty());
  CHECK(root.has("z"));
  CHECK_FALSE(root.has("l"));
  CHECK_FALSE(root.find("y").has_value());
  const JsonPlace inner = root.find("a")->at("l").items()[1];
  CHECK(inner.pointer() == "/a/l/1");
  CHECK(inner.dumped() == "{\"k\":\"v\"}");
  CHECK(inner.is_object());
  CHECK(root.at("a").at("l").is_array());
  CHECK(inner.at("k").is_string());
}

}  // namespace remat
