#pragma once

#include <memory>

#include "schedules/protocols/save_unit_protocol.hpp"

namespace remat {

/// P9, callables whose ops are kept, all of them but those that may not be. Ops that have names are
/// kept as in P8; a callable within a compiled stretch is not seen. Source: protocols.md P9.
class KeptCallablesProtocol : public SaveUnitProtocol {
 public:
  explicit KeptCallablesProtocol(const ProtocolOptions& options);
  std::string_view name() const override { return "kept-callables"; }
};

std::unique_ptr<Protocol> make_kept_callables(const ProtocolOptions& options);

}  // namespace remat
