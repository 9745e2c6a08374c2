#pragma once

#include <array>
#include <string_view>

namespace cpverify::tidy {

/// A folder of src/ and the folders whose headers its files may include besides its own and
/// cpverify/. Separated by blanks; every layer lists all it may use, nothing is implied.
struct Layer {
  std::string_view folder;
  std::string_view may_include;
};

// docs/architecture.md explains the directions; from the bottom up.
inline constexpr std::array kLayers{
    Layer{"support", ""},
    Layer{"numerics", "support"},
    Layer{"scenario", "numerics support"},
    Layer{"layout", "scenario numerics support"},
    Layer{"plan", "layout scenario numerics support"},
    Layer{"gpu", "support"},
    Layer{"sim", "gpu numerics support"},
    Layer{"collectives", "gpu numerics support"},
    Layer{"run", "gpu layout plan numerics support"},
    Layer{"judge", "run plan scenario numerics support reference"},
    Layer{"mutants", "plan layout scenario support"},
    Layer{"report", "support"},
    Layer{"verify",
          "report mutants judge run collectives sim gpu plan layout scenario numerics support "
          "reference"},
    Layer{"tool",
          "verify report mutants judge run collectives sim gpu plan layout scenario numerics "
          "support"},
};

}  // namespace cpverify::tidy
