#include <catch2/catch.hpp>
#include <string>

#include "model/errors.hpp"
#include "schedules/action_token.hpp"
#include "schedules/pipeline_lists_text.hpp"
#include "tests/schedules/shared_schedules.hpp"

using namespace remat;

namespace {

const std::string expected =
    "; expected one like 0F1, 0B1, 0I1, 0W1, 0R1, 0SEND_F1, (0F3;3B1)OVERLAP_F_B, F0.1 or DX0.1";

std::string refusal(const std::string& text) {
  try {
    read_pipeline_lists("lists.csv", text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

/// How a token is printed, and how a table would have it.
std::string both_ways(const std::string& token) {
  const auto group = read_token(token);
  return group ? group_name(*group, 0) + " " + table_token(*group, 0) : "none";
}

}  // namespace

TEST_CASE("a token is read as tables have it and as we print it", "[schedules]") {
  CHECK(both_ways("0F1") == "F0.1 0F1");
  CHECK(both_ways("F0.1") == "F0.1 0F1");
  CHECK(both_ways("12I3") == "DX12.3 12I3");
  CHECK(both_ways("DW12.3") == "DW12.3 12W3");
  CHECK(both_ways("p1:3B2") == "p1:B3.2 p1:3B2");
  CHECK(both_ways("0F1.2") == "F0.1/2 0F1.2");
  CHECK(both_ways("R0.1/2") == "R0.1/2 0R1.2");
  CHECK(both_ways("(0F3;p1:3B1)OVERLAP_F_B") == "(F0.3+p1:B3.1) (0F3;p1:3B1)OVERLAP_F_B");
  CHECK(both_ways("(F0.3+B3.1)") == "(F0.3+B3.1) (0F3;3B1)OVERLAP_F_B");
  CHECK(both_ways("2WAIT_SEND_B7") == "WAIT_SEND_B2.7 2WAIT_SEND_B7");
  CHECK(both_ways("3WAIT_REDUCE_GRAD") == "WAIT_REDUCE_GRAD3 3WAIT_REDUCE_GRAD");
  CHECK(both_ways("BATCH(0SEND_F1+0RECV_B0)") ==
        "BATCH(SEND_F0.1+RECV_B0.0) BATCH(0SEND_F1+0RECV_B0)");
}

TEST_CASE("what is no token is not read", "[schedules]") {
  for (const char* token : {"",
                            "F",
                            "0",
                            "0F",
                            "F0",
                            "F0.",
                            "0X1",
                            "0F1.",
                            "0F1/2",
                            "F0.1.2",
                            "-1F0",
                            "0F-1",
                            "0f1",
                            "p2:0F1",
                            "p:0F1",
                            "p1",
                            "0F12345678",
                            "0F1 ",
                            "()",
                            "(0F1)",
                            "(0F1;0B1)",
                            "(0F1+)",
                            "(0F1;0B1;0F2)OVERLAP_F_B",
                            "(0F1;0SEND_F1)OVERLAP_F_B",
                            "OVERLAP_F_B",
                            "0UNSHARD1",
                            "BATCH",
                            "BATCH()",
                            "BATCH(0F1)",
                            "BATCH(BATCH(0SEND_F1))",
                            "((0F1;0B1)OVERLAP_F_B"}) {
    CAPTURE(token);
    CHECK(both_ways(token) == "none");
  }
}

TEST_CASE("lists are read from CSV and from JSON, and written as the tables are", "[schedules]") {
  const std::string csv = "0F0,0F1,0B0,0B1\n1F0,(1F1;1B0)OVERLAP_F_B,1B1\n";
  const PipelineLists lists = read_pipeline_lists("lists.csv", csv);
  CHECK(lists_csv(lists) == csv);
  CHECK(read_pipeline_lists("lists.csv", "0F0,,0F1, 0B0,0B1,,\r\n,1F0,(F1.1+B1.0),1B1\r\n\r\n") ==
        lists);
  const std::string ours =
      R"json([["F0.0", "F0.1", "B0.0", "B0.1"], ["F1.0", "(F1.1+B1.0)", "B1.1"]])json";
  CHECK(read_pipeline_lists("lists.json", R"({"name": "x", "ranks": )" + ours + "}") == lists);
  CHECK(read_pipeline_lists("lists.json", ours) == lists);
}

TEST_CASE("bad lists are refused with file, line and what was expected", "[schedules]") {
  CHECK(refusal("0F0,0B0\n1F0,1Q0\n") == "lists.csv:2: '1Q0' in cell 2 is no action" + expected);
  CHECK(refusal("0F0\n\n1F0\n") == "lists.csv:2: a rank without actions; expected some");
  CHECK(refusal("") == "lists.csv: the file is empty; expected a list a rank");
  CHECK(refusal(" \n") == "lists.csv: the file is empty; expected a list a rank");
  CHECK(refusal(std::string("\0\x01,\n", 4)) ==
        "lists.csv:1: '" + std::string("??") + "' in cell 1 is no action" + expected);
  CHECK(refusal("{\"ranks\": [[\"F0.0\"],\n[\"F1.x\"]]}") ==
        "lists.csv:2: 'F1.x' is no action" + expected + " (at /ranks/1/0)");
  CHECK(refusal("{\"ranks\": []}") ==
        "lists.csv:1: no ranks; expected a list for each (at /ranks)");
  CHECK(refusal("{\"lists\": []}").find("ranks") != std::string::npos);
  CHECK(refusal("0F9999999\n") ==
        "lists.csv: 1 stages, 10000000 micro-batches and 1 slices are named in 1 actions; expected "
        "numbers that count from 0");
}

TEST_CASE("every table is written as it was read, idle slots left out", "[schedules]") {
  const auto shared = shared_schedules();
  if (!shared) return;
  for (const std::string& file : csv_files_in(*shared + "tables")) {
    CAPTURE(file);
    std::string text = text_of(*shared + "tables/" + file);
    std::erase(text, '\r');
    const std::string written = lists_csv(read_pipeline_lists(file, text));
    for (const char* idle : {",,", "\n,"}) {
      for (std::size_t at = 0; (at = text.find(idle)) != std::string::npos;)
        text.erase(text.find(',', at), 1);
    }
    for (std::size_t at = 0; (at = text.find(",\n")) != std::string::npos;)
      text.erase(at, 1);
    if (text.starts_with(",")) text.erase(0, 1);
    CHECK(written == text);
  }
}
