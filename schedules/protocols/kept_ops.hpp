#pragma once

#include <memory>

#include "schedules/protocols/save_unit_protocol.hpp"

namespace remat {

/// P8, ops kept by their names: inside a compiled stretch as well as outside. Source: protocols.md
/// P8.
class KeptOpsProtocol : public SaveUnitProtocol {
 public:
  explicit KeptOpsProtocol(const ProtocolOptions& options);
  std::string_view name() const override { return "kept-ops"; }
};

std::unique_ptr<Protocol> make_kept_ops(const ProtocolOptions& options);

}  // namespace remat
