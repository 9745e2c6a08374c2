#pragma once

#include <array>
#include <string_view>

namespace cpverify::tidy {

/// A pattern that may not occur in the code of some folders, comments and strings apart.
struct Ban {
  std::string_view pattern;  ///< ECMAScript.
  std::string_view reason;
  std::string_view folders;  ///< Beginnings of paths, separated by blanks.
  std::string_view except;   ///< The same; why is said above the row.
};

inline constexpr std::string_view kLibrary = "src/ include/ reference/";

inline constexpr std::array kBans{
    // judge compares doubles by bound, never by bits, and its bounds need exp and log.
    Ban{R"(std::(exp|exp2|expm1|log|log2|log10|log1p|pow|sin|cos|tan|tanh|erf)[fl]?\s*\()",
        "libm's bits depend on the machine; use src/numerics", "src/", "src/judge/"},
    Ban{R"(\b(s?rand|drand48|random)\s*\(|std::(mt19937|minstd_rand|default_random_engine))",
        "use support/rng.hpp", kLibrary, ""},
    Ban{R"(\brandom_device\b)", "a run is a function of its seed", kLibrary, ""},
    Ban{R"(std::\w+_distribution\b|std::shuffle\b|std::sample\b)",
        "results differ between standard libraries; use support/rng.hpp", kLibrary, ""},
    // The tool may say on stderr how long a run took.
    Ban{R"(\b(steady|system|high_resolution)_clock\b|\bclock_gettime\b|\b(std::|::)time\s*\()",
        "no clocks in results", kLibrary, "src/tool/"},
    // The tool may ask the terminal's settings.
    Ban{R"(\bgetenv\b)", "settings come from flags and files", kLibrary, "src/tool/"},
    Ban{R"(\bunordered_(map|set|multimap|multiset)\b)",
        "hash order is not part of the program; use a sorted vector or std::map", kLibrary, ""},
    Ban{R"(#include\s*<(iostream|sstream|strstream)>|\bstd::(cout|cerr|clog)\b)", "use fmt",
        kLibrary, ""},
    // A failed check may not trust the heap, so it does not trust fmt.
    Ban{R"(\b(f|s|sn|v|vf|vsn)?printf\s*\(|\bf?puts\s*\()", "use fmt", kLibrary,
        "src/support/check.cpp"},
    // main is the last line of defence.
    Ban{R"(\bcatch\s*\(\s*\.\.\.\s*\))", "catch what you can handle", kLibrary,
        "src/tool/main.cpp"},
    // Inside main nothing else can see it.
    Ban{R"(\busing\s+namespace\b)", "write the namespace", kLibrary, "src/tool/main.cpp"},
    Ban{R"(\bstd::source_location\b|\bstd::views\b|\bstd::ranges::views\b)",
        "clang 14 cannot compile it with libstdc++ 12", kLibrary, ""},
    // A failed check and main end the process; nobody else may.
    Ban{R"((^|[^.>:\w]|std::)(exit|_exit|quick_exit|abort)\s*\()",
        "throw, return a finding or CPVERIFY_CHECK", kLibrary,
        "src/support/check.cpp src/tool/main.cpp"},
    // The tool names temporary files after the process.
    Ban{R"(std::this_thread::get_id|\bgettid\b|\bgetpid\b)", "who runs is not in the scenario",
        kLibrary, "src/tool/"},
    Ban{R"(\bprintf\s*\(|\bassert\s*\()", "kernels do not print and do not assert", "kernels/", ""},
};

}  // namespace cpverify::tidy
