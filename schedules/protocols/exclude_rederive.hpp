#pragma once

#include <memory>

#include "schedules/protocols/exclude.hpp"

namespace remat {

/// P4 to P6, the exclusion wrapper that lets go of saved inputs which a replay makes again, and of
/// outputs that only other excluded regions read (`save_output` false). Source: protocols.md P4 to
/// P6, with its fallback table.
class ExcludeRederiveProtocol : public ExcludeProtocol {
 public:
  using ExcludeProtocol::ExcludeProtocol;

  std::string_view name() const override { return "exclude-rederive"; }
  ExclusionRules exclusion_rules() const override;
  bool rederives(const InputMatch& match) const override;
};

std::unique_ptr<Protocol> make_exclude_rederive(const ProtocolOptions& options);

}  // namespace remat
