#include "model/builders/program_builders.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "model/listed.hpp"

namespace remat {

std::span<const ProgramBuilderRow> program_builders() {
  static const std::array rows = {
      ProgramBuilderRow{"chain", chain_keys(), build_chain},
      ProgramBuilderRow{"transformer", transformer_keys(), build_transformer},
      ProgramBuilderRow{"moe", moe_keys(), build_moe},
  };
  return rows;
}

Program build_program(const JsonPlace& place, const ProgramReading& reading) {
  const JsonPlace name = place.at("builder");
  const std::string asked = name.text();
  for (const ProgramBuilderRow& row : program_builders())
    if (row.name == asked) return row.build(place, reading);
  name.fail("unknown builder '" + asked + "'; expected one of " +
            listed(program_builders(), &ProgramBuilderRow::name));
}

}  // namespace remat
