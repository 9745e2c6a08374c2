#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/isa/type.hpp"

/// PTX as it is written. Views point into ModuleAst::text.
namespace cpverify::sim {

struct Position {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

struct Operand {
  enum class Kind : std::uint8_t {
    name,         ///< Register, special register, variable, label or function.
    integer,      ///< In bits, two's complement.
    real_single,  ///< 32 bits.
    real_double,  ///< 64 bits.
    address,      ///< [name + offset], [offset].
    vector,       ///< {elements}
    list,         ///< (elements), of call.
    sink,         ///< _
  };
  Kind kind = Kind::sink;
  std::string_view name;
  std::string_view pair;  ///< p of `d|p`; empty when there is none.
  std::uint64_t bits = 0;
  std::int64_t offset = 0;
  bool is_negated = false;  ///< `!p`
  std::vector<Operand> elements;
  Position where;
};

struct InstructionAst {
  std::string_view name;   ///< With all suffixes.
  std::string_view guard;  ///< Predicate register; empty when unguarded.
  bool is_guard_negated = false;
  std::vector<Operand> operands;
  Position where;
};

struct RegisterDeclaration {
  std::string_view name;
  Type type = Type::none;
  std::uint32_t count = 0;  ///< %r<count>: %r0 .. %r(count-1); 0 for one register of that name.
};

enum class VariableSpace : std::uint8_t { global, constant, shared, local, param };

struct Initialiser {
  std::uint64_t bits = 0;
  std::string_view symbol;  ///< Its address is stored instead of bits.
};

struct VariableDeclaration {
  std::string_view name;
  VariableSpace space = VariableSpace::global;
  Type type = Type::b8;
  std::uint32_t align_bytes = 1;
  std::uint64_t size_bytes = 0;  ///< 0 for an array without extent, such as dynamic shared memory.
  bool is_extern = false;
  std::vector<Initialiser> values;
  Position where;
};

struct LabelAst {
  std::string_view name;
  Position where;
};

/// name: .branchtargets label, ...; what a brx.idx chooses from.
struct BranchTargets {
  std::string_view name;
  std::vector<Operand> labels;
  Position where;
};

/// .loc: the lines that follow come from here.
struct LineMark {
  std::uint32_t file = 0;
  std::uint32_t line = 0;
};

struct ScopeOpen {};
struct ScopeClose {};

using Statement = std::variant<InstructionAst, RegisterDeclaration, VariableDeclaration, LabelAst,
                               BranchTargets, LineMark, ScopeOpen, ScopeClose>;

/// An .entry or .func. A function that is only declared has no body.
struct FunctionAst {
  std::string_view name;
  bool is_entry = false;
  bool has_body = false;
  std::vector<VariableDeclaration> results;
  std::vector<VariableDeclaration> parameters;
  std::vector<Statement> body;  ///< Scopes are balanced.
  std::array<std::uint32_t, 3> max_threads{};
  std::array<std::uint32_t, 3> required_threads{};
  std::array<std::uint32_t, 3> required_cluster{};
  std::uint32_t max_cluster = 0;  ///< .maxclusterrank; 0 when absent.
  std::uint32_t registers = 0;    ///< .maxnreg; 0 when absent.
  bool has_explicit_cluster = false;
  Position where;
};

struct FileName {
  std::uint32_t index = 0;
  std::string_view name;
};

struct ModuleAst {
  std::string text;
  std::string file;
  std::vector<VariableDeclaration> variables;
  std::vector<FunctionAst> functions;
  std::vector<FileName> files;
};

}  // namespace cpverify::sim
