#include "cli/campaign_commands.hpp"

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/console.hpp"
#include "cli/fuzz_command.hpp"
#include "cli/mutants_command.hpp"
#include "cli/selfcheck_command.hpp"
#include "cli/shrink_command.hpp"

namespace remat {
namespace {

using Command = std::function<ExitCode()>;

/// An option that is given must say something: an unset variable of a script is no default.
const CLI::Validator not_empty(
    [](std::string& text) { return std::string(text.empty() ? "is empty; expected a value" : ""); },
    "");
/// CLI11 takes -1 for the largest number there is.
const CLI::Validator whole_number(
    [](std::string& text) {
      const bool is_one = !text.empty() && text.size() < 20 &&
                          text.find_first_not_of("0123456789") == std::string::npos &&
                          (text.size() == 1 || text[0] != '0');
      return is_one ? std::string() : "'" + text + "' is no number; expected 0 or more";
    },
    "");
const CLI::Validator positive_number(
    [](std::string& text) {
      const bool is_zero = text == "0";
      return is_zero ? std::string("is 0; expected 1 or more") : std::string();
    },
    "");

constexpr const char* output_help = "write to this file instead of standard output";
constexpr const char* mutant_help =
    "plant this fault: a name that mutants prints, or its first word (M23)";

void want_values(CLI::App& command) {
  for (CLI::Option* option : command.get_options())
    if (option->get_items_expected_max() > 0) option->check(not_empty);
}

void add_fuzz(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<FuzzOptions>();
  CLI::App* fuzz = app.add_subcommand(
      "fuzz", "random programs under every protocol, every invariant, until one fails");
  fuzz->add_option("--seed", options->seed,
                   "a number, 0x…, or a commit's 40 digits; the same seed runs the same cases")
      ->envname("REMATSIM_SEED")
      ->capture_default_str();
  fuzz->add_option("--cases", options->cases, "stop after so many cases")
      ->check(whole_number)
      ->type_name("N");
  fuzz->add_option("--budget", options->budget,
                   "stop after this time: 60s, 500ms, 2m (10s where there are no --cases either)")
      ->envname("REMATSIM_BUDGET")
      ->type_name("TIME");
  fuzz->add_option("--jobs", options->jobs, "threads, or auto; the result does not depend on it")
      ->envname("REMATSIM_JOBS")
      ->capture_default_str();
  fuzz->add_option("--shard", options->shard, "run part I of N, counted from 0")
      ->type_name("I/N")
      ->capture_default_str();
  fuzz->add_option("--protocol", options->protocol, "only this protocol")->type_name("NAME");
  fuzz->add_option("--max-failures", options->max_failures, "go on until so many cases fail")
      ->check(whole_number)
      ->check(positive_number)
      ->capture_default_str();
  fuzz->add_option("--mutant", options->mutant, mutant_help)->type_name("NAME");
  fuzz->add_option("--case", options->fuzz_case,
                   "run this case alone: a token, or a file that holds one")
      ->type_name("TOKEN");
  fuzz->add_option("--trace", options->trace, "with --case: write its trace to this file")
      ->type_name("FILE");
  fuzz->add_option("--corpus", options->corpus,
                   "run the cases of this folder first, and add those that reach what is new")
      ->envname("REMATSIM_CORPUS")
      ->type_name("DIR");
  fuzz->add_option("--save", options->save,
                   "write each shrunk failure there: NAME.scenario.json and NAME.jsonl")
      ->type_name("DIR");
  fuzz->add_option("--emit", options->emit, "write every case's scenario and trace there")
      ->type_name("DIR");
  fuzz->add_option("--junit", options->junit, "write a JUnit report")->type_name("FILE");
  fuzz->add_option("--sarif", options->sarif, "write a SARIF 2.1.0 report")->type_name("FILE");
  fuzz->add_flag("--digest", options->digest,
                 "run all --cases whatever fails, and print their digest alone");
  fuzz->add_flag("--json", options->json, "print one JSON object");
  fuzz->add_flag("--progress", options->progress,
                 "show progress, also where standard error is no terminal");
  fuzz->add_option("-o,--output", options->output, output_help)->type_name("FILE");
  CLI::Option* const one_case = fuzz->get_option("--case");
  for (const char* name : {"--cases", "--budget", "--shard", "--protocol", "--max-failures",
                           "--corpus", "--save", "--emit", "--junit", "--sarif"})
    one_case->excludes(fuzz->get_option(name));
  fuzz->get_option("--trace")->needs(one_case);
  want_values(*fuzz);
  fuzz->footer(
      "Example:\n  rematsim fuzz --budget 60s --jobs auto --save failures\n"
      "Exit status: 0 nothing found, 1 a violation or a health limit missed, 2 bad usage, 130 "
      "interrupted.");
  fuzz->callback([options, &chosen] {
    chosen = [options] {
      options->progress = options->progress || progress_is_wanted();
      return fuzz_command(*options);
    };
  });
}

void add_shrink(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<ShrinkCommandOptions>();
  CLI::App* shrink = app.add_subcommand("shrink", "make a failing case smaller");
  shrink
      ->add_option("CASE", options->fuzz_case,
                   "a token that fuzz printed, or a file that holds one; - is standard input")
      ->required()
      ->type_name("");
  shrink->add_option("--mutant", options->mutant, mutant_help)->type_name("NAME");
  shrink->add_option("--save", options->save, "write NAME.scenario.json and NAME.jsonl there")
      ->type_name("DIR");
  shrink->add_flag("--json", options->json, "print one JSON object");
  shrink->add_option("-o,--output", options->output, output_help)->type_name("FILE");
  want_values(*shrink);
  shrink->footer(
      "Example:\n  rematsim shrink R3.AICAAgABtE --mutant M23\n"
      "Exit status: 0 the case holds, 1 it fails, 2 bad usage.");
  shrink->callback([options, &chosen] { chosen = [options] { return shrink_command(*options); }; });
}

void add_mutants(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<MutantsOptions>();
  CLI::App* mutants = app.add_subcommand("mutants", "plant every known fault: each must be caught");
  mutants->add_option("NAME", options->names, "only these: names, or their first words (M23)")
      ->type_name("");
  mutants->add_option("--seed", options->seed, "as of fuzz")
      ->envname("REMATSIM_SEED")
      ->capture_default_str();
  mutants->add_option("--budget", options->budget, "time for all of them")
      ->type_name("TIME")
      ->capture_default_str();
  mutants->add_option("--cases", options->cases, "at most so many cases for each")
      ->check(whole_number)
      ->type_name("N")
      ->capture_default_str();
  mutants->add_option("--jobs", options->jobs, "threads, or auto")
      ->envname("REMATSIM_JOBS")
      ->capture_default_str();
  mutants->add_option("--save", options->save, "write each counterexample there")->type_name("DIR");
  mutants->add_flag("--matrix", options->matrix, "repeat over 30 seeds: cases until it is caught");
  mutants->add_flag("--json", options->json, "print one JSON object");
  mutants->add_option("-o,--output", options->output, output_help)->type_name("FILE");
  want_values(*mutants);
  mutants->footer(
      "Example:\n  rematsim mutants M23 M25\n"
      "Exit status: 0 all are caught, 1 one survived, 2 bad usage, 130 interrupted.");
  mutants->callback(
      [options, &chosen] { chosen = [options] { return mutants_command(*options); }; });
}

void add_selfcheck(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<SelfcheckOptions>();
  CLI::App* selfcheck = app.add_subcommand(
      "selfcheck", "run the same cases in several ways: all must come to the same");
  selfcheck->add_option("--seed", options->seed, "as of fuzz")
      ->envname("REMATSIM_SEED")
      ->capture_default_str();
  selfcheck->add_option("--cases", options->cases, "so many cases each time")
      ->check(whole_number)
      ->check(positive_number)
      ->capture_default_str();
  selfcheck->add_option("--mutant", options->mutant, mutant_help)->type_name("NAME");
  selfcheck->add_flag("--json", options->json, "print one JSON object");
  selfcheck->add_option("-o,--output", options->output, output_help)->type_name("FILE");
  want_values(*selfcheck);
  selfcheck->footer(
      "Example:\n  rematsim selfcheck --cases 50000\n"
      "Exit status: 0 all agree, 1 two runs differ, 2 bad usage, 130 interrupted.");
  selfcheck->callback(
      [options, &chosen] { chosen = [options] { return selfcheck_command(*options); }; });
}

}  // namespace

void add_campaign_commands(CLI::App& app, std::function<ExitCode()>& chosen) {
  add_fuzz(app, chosen);
  add_shrink(app, chosen);
  add_mutants(app, chosen);
  add_selfcheck(app, chosen);
}

}  // namespace remat
