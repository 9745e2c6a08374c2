#include "sim/isa/decoder.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "cpverify/error.hpp"
#include "sim/isa/ast.hpp"
#include "sim/isa/code.hpp"
#include "sim/isa/control_flow.hpp"
#include "sim/isa/decode_trace.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/instruction_decoder.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/scope.hpp"

namespace cpverify::sim {
namespace {

/// Inlining is exponential in hostile modules; these bounds are far above what compilers emit.
constexpr std::size_t kCallDepthMax = 32;
constexpr std::size_t kInstructionsMax = 1U << 20;
/// Also what emits no instruction takes time, such as a call of an empty function.
constexpr std::size_t kStatementsMax = 1U << 22;
constexpr std::uint64_t kLocalBytesMax = 512ULL * 1024;
/// More than any launch may have, small enough that offsets never overflow.
constexpr std::uint64_t kSharedBytesMax = 1U << 30;

std::uint64_t align_up(std::uint64_t value, std::uint64_t align) {
  return (value + align - 1) / align * align;
}

class EntryDecoder {
 public:
  EntryDecoder(const ModuleAst& module, const VariableAddresses& addresses, DecodeTrace* trace)
      : module_{&module}, addresses_{&addresses}, trace_{trace}, instructions_{module.file, code_} {
    for (const FunctionAst& function : module.functions) {
      if (function.has_body) functions_[function.name] = &function;
    }
    for (const VariableDeclaration& variable : module.variables) {
      module_variables_[variable.name] = &variable;
    }
  }

  Code decode(const FunctionAst& entry);

 private:
  void place_parameters(const FunctionAst& entry, Scope& scope);
  void apply_limits(const FunctionAst& entry);
  void resolve_branches();
  void walk(const FunctionAst& function, ScopeStack& scopes);
  void collect_labels(const FunctionAst& function, std::size_t begin, Scope& scope);
  void declare(const VariableDeclaration& declaration, Scope& scope);
  Variable place(const VariableDeclaration& declaration);
  void decode_indexed_branch(const InstructionAst& instruction, ScopeStack& scopes);
  void decode_statement(const InstructionAst& instruction, ScopeStack& scopes);
  template <class Action>
  void attempt(const InstructionAst& instruction, const Action& action);
  const FunctionAst& resolve_call(const InstructionAst& instruction, ScopeStack& scopes,
                                  Scope& inner);
  void inline_body(const FunctionAst& callee, ScopeStack& inner);
  void bind(const Operand& arguments, const std::vector<VariableDeclaration>& formals,
            ScopeStack& scopes, Scope& inner);
  std::uint32_t new_label() {
    label_places_.push_back(kNoIndex);
    return static_cast<std::uint32_t>(label_places_.size() - 1);
  }
  void put_label(std::uint32_t label) {
    label_places_[label] = static_cast<std::uint32_t>(code_.insns.size());
  }
  std::uint32_t file_index(std::uint32_t file);
  [[noreturn]] void fail(Position where, const std::string& message) const {
    throw InputError{{module_->file, static_cast<int>(where.line), static_cast<int>(where.column)},
                     message};
  }

  const ModuleAst* module_;
  const VariableAddresses* addresses_;
  DecodeTrace* trace_;  ///< Null: the first refusal ends the decoding.
  std::map<std::string_view, const FunctionAst*> functions_;
  std::map<std::string_view, const VariableDeclaration*> module_variables_;
  std::map<std::string_view, Variable> placed_;  ///< Of module_variables_, once used.
  Code code_;
  InstructionDecoder instructions_;
  std::vector<std::uint32_t> label_places_;
  std::vector<const FunctionAst*> calls_;     ///< From the entry to where we are.
  std::vector<std::uint32_t> return_labels_;  ///< Of each of calls_; kNoIndex for the entry.
  std::map<std::uint32_t, std::uint32_t> files_;
  std::uint64_t shared_bytes_ = 0;
  std::uint64_t dynamic_align_ = 16;
  std::uint64_t local_bytes_ = 0;
  std::size_t statements_ = 0;
};

void EntryDecoder::place_parameters(const FunctionAst& entry, Scope& scope) {
  std::uint64_t offset = 0;
  for (const VariableDeclaration& parameter : entry.parameters) {
    offset = align_up(offset, parameter.align_bytes);
    scope.variables[parameter.name] = {Variable::Place::kernel_parameter, offset};
    code_.info.parameters.push_back({std::string{parameter.name},
                                     static_cast<std::uint32_t>(offset),
                                     static_cast<std::uint32_t>(parameter.size_bytes)});
    offset += parameter.size_bytes;
    // 4 KiB before sm_70, 32764 bytes since PTX 8.1. Source: PTX ISA, "Parameter State Space".
    if (offset > 32764) fail(parameter.where, "parameters take more than 32764 bytes");
  }
  code_.info.parameter_bytes = static_cast<std::uint32_t>(offset);
}

void EntryDecoder::apply_limits(const FunctionAst& entry) {
  const auto product = [](const std::array<std::uint32_t, 3>& extent) {
    return std::uint64_t{extent[0]} * std::min(extent[1], 1024U) * std::min(extent[2], 1024U);
  };
  for (const std::uint64_t threads :
       {product(entry.max_threads), product(entry.required_threads)}) {
    if (threads == 0) continue;
    code_.info.max_threads =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(code_.info.max_threads, threads));
  }
  code_.info.required_block = entry.required_threads;
  code_.info.required_cluster = entry.required_cluster;
  code_.info.max_cluster = entry.max_cluster;
  code_.info.registers = entry.registers;
  code_.info.has_explicit_cluster = entry.has_explicit_cluster;
}

Code EntryDecoder::decode(const FunctionAst& entry) {
  code_.info.name = entry.name;
  // A variable of the module takes room in this kernel only when the kernel names it.
  instructions_.set_outer([this](std::string_view name) -> std::optional<Variable> {
    const auto found = module_variables_.find(name);
    if (found == module_variables_.end()) return std::nullopt;
    const auto [placed, is_new] = placed_.try_emplace(name);
    if (is_new) placed->second = place(*found->second);
    return placed->second;
  });
  apply_limits(entry);
  ScopeStack scopes{code_.registers};
  place_parameters(entry, scopes.innermost());
  calls_.push_back(&entry);
  return_labels_.push_back(kNoIndex);
  walk(entry, scopes);
  // Running off the end of a body returns.
  instructions_.emit({Op::ret, {}}, Insn{}, {});
  const bool is_complete = trace_ == nullptr || trace_->refused.empty();
  if (is_complete) resolve_branches();
  code_.info.static_shared_bytes =
      static_cast<std::uint32_t>(align_up(shared_bytes_, dynamic_align_));
  code_.info.local_bytes = static_cast<std::uint32_t>(align_up(local_bytes_, 16));
  code_.registers.set_dynamic_shared(code_.info.static_shared_bytes);
  return std::move(code_);
}

void EntryDecoder::resolve_branches() {
  for (Insn& insn : code_.insns) {
    if (info(insn.op).effect == Effect::branch) insn.target = label_places_[insn.target];
  }
  insert_joins(code_);
}

/// A label is known in all of its scope, also before it stands.
void EntryDecoder::collect_labels(const FunctionAst& function, std::size_t begin, Scope& scope) {
  std::size_t depth = 0;
  for (std::size_t i = begin; i < function.body.size(); ++i) {
    const Statement& statement = function.body[i];
    if (std::holds_alternative<ScopeOpen>(statement)) ++depth;
    if (std::holds_alternative<ScopeClose>(statement) && depth-- == 0) return;
    if (depth != 0) continue;
    const auto check_new = [&](std::string_view name, Position where) {
      if (!scope.branch_targets.contains(name) && !scope.labels.contains(name)) return;
      fail(where, fmt::format("label '{}' stands twice", name));
    };
    if (const auto* const targets = std::get_if<BranchTargets>(&statement)) {
      check_new(targets->name, targets->where);
      scope.branch_targets[targets->name] = targets;
    }
    const auto* const label = std::get_if<LabelAst>(&statement);
    if (label == nullptr) continue;
    check_new(label->name, label->where);
    scope.labels[label->name] = new_label();
  }
}

std::uint32_t EntryDecoder::file_index(std::uint32_t file) {
  const auto [found, is_new] = files_.try_emplace(file, 0);
  if (is_new) {
    for (const FileName& name : module_->files) {
      if (name.index != file) continue;
      found->second = static_cast<std::uint32_t>(code_.files.size());
      code_.files.emplace_back(name.name);
      break;
    }
  }
  return found->second;
}

Variable EntryDecoder::place(const VariableDeclaration& declaration) {
  switch (declaration.space) {
    case VariableSpace::shared:
      if (declaration.size_bytes == 0) {
        dynamic_align_ = std::max<std::uint64_t>(dynamic_align_, declaration.align_bytes);
        return {Variable::Place::dynamic_shared, 0};
      }
      shared_bytes_ = align_up(shared_bytes_, declaration.align_bytes) + declaration.size_bytes;
      if (shared_bytes_ > kSharedBytesMax) fail(declaration.where, "too much shared memory");
      return {Variable::Place::shared, shared_bytes_ - declaration.size_bytes};
    case VariableSpace::local:
    case VariableSpace::param:
      local_bytes_ = align_up(local_bytes_, declaration.align_bytes) + declaration.size_bytes;
      if (local_bytes_ > kLocalBytesMax) {
        fail(declaration.where,
             fmt::format("a thread has more than {} bytes of local memory", kLocalBytesMax));
      }
      return {Variable::Place::local, local_bytes_ - declaration.size_bytes};
    case VariableSpace::global:
    case VariableSpace::constant:
      break;
  }
  const auto found = addresses_->find(declaration.name);
  if (found == addresses_->end()) {
    fail(declaration.where,
         fmt::format("variable '{}' is declared but not defined in this module", declaration.name));
  }
  return {Variable::Place::global, found->second};
}

void EntryDecoder::declare(const VariableDeclaration& declaration, Scope& scope) {
  scope.variables[declaration.name] = place(declaration);
}

void EntryDecoder::walk(const FunctionAst& function, ScopeStack& scopes) {
  collect_labels(function, 0, scopes.innermost());
  for (std::size_t i = 0; i < function.body.size(); ++i) {
    const Statement& statement = function.body[i];
    if (++statements_ > kStatementsMax) {
      fail(function.where, "kernel has more than four million statements, inlined calls included");
    }
    if (std::holds_alternative<ScopeOpen>(statement)) {
      scopes.open();
      collect_labels(function, i + 1, scopes.innermost());
    } else if (std::holds_alternative<ScopeClose>(statement)) {
      scopes.close();
    } else if (const auto* registers = std::get_if<RegisterDeclaration>(&statement)) {
      scopes.declare(*registers);
    } else if (const auto* variable = std::get_if<VariableDeclaration>(&statement)) {
      declare(*variable, scopes.innermost());
    } else if (const auto* label = std::get_if<LabelAst>(&statement)) {
      put_label(scopes.innermost().labels.at(label->name));
    } else if (const auto* mark = std::get_if<LineMark>(&statement)) {
      instructions_.set_line(file_index(mark->file), mark->line);
    } else if (const auto* instruction = std::get_if<InstructionAst>(&statement)) {
      decode_statement(*instruction, scopes);
    }
  }
}

/// Runs the action. With a trace, what it refuses is noted and decoding goes on.
template <class Action>
void EntryDecoder::attempt(const InstructionAst& instruction, const Action& action) {
  if (trace_ == nullptr) {
    action();
    return;
  }
  ++trace_->opcodes[std::string{instruction.name}];
  try {
    action();
  } catch (const InputError& error) {
    const Position where = instruction.where;
    trace_->refused.try_emplace({where.line, where.column},
                                RefusedInstruction{instruction.name, error.what()});
  }
}

/// Lanes whose guard is false go around what the branch becomes.
void EntryDecoder::decode_indexed_branch(const InstructionAst& instruction, ScopeStack& scopes) {
  const std::vector<Operand>& operands = instruction.operands;
  if (operands.size() != 2) {
    fail(instruction.where, "brx.idx takes an index and the name of a list of labels");
  }
  const BranchTargets* const targets = scopes.find_branch_targets(operands[1].name);
  if (targets == nullptr) {
    fail(operands[1].where,
         fmt::format("'{}' is no .branchtargets that is in reach", operands[1].name));
  }
  std::vector<std::uint32_t> labels;
  for (const Operand& target : targets->labels) {
    const std::optional<std::uint32_t> label = scopes.find_label(target.name);
    if (!label) fail(target.where, fmt::format("label '{}' is not in reach", target.name));
    labels.push_back(*label);
  }
  InstructionAst plain = instruction;
  plain.guard = {};
  if (instruction.guard.empty()) {
    instructions_.branch_by_index(plain, labels, scopes);
    return;
  }
  InstructionAst around = instruction;
  around.is_guard_negated = !around.is_guard_negated;
  const std::uint32_t after = new_label();
  instructions_.branch(around, after, scopes);
  instructions_.branch_by_index(plain, labels, scopes);
  put_label(after);
}

void EntryDecoder::decode_statement(const InstructionAst& instruction, ScopeStack& scopes) {
  if (code_.insns.size() > kInstructionsMax) {
    fail(instruction.where, "kernel has more than a million instructions");
  }
  if (instruction.name == "call" || instruction.name == "call.uni") {
    ScopeStack inner{code_.registers};
    const FunctionAst* callee = nullptr;
    attempt(instruction, [&] { callee = &resolve_call(instruction, scopes, inner.innermost()); });
    if (callee != nullptr) inline_body(*callee, inner);
    return;
  }
  attempt(instruction, [&] {
    if (instruction.name == "brx.idx" || instruction.name == "brx.idx.uni") {
      decode_indexed_branch(instruction, scopes);
      return;
    }
    const bool is_return = instruction.name == "ret" || instruction.name == "ret.uni";
    if (!is_return || return_labels_.back() == kNoIndex) {
      instructions_.decode(instruction, scopes);
      return;
    }
    if (!instruction.operands.empty()) fail(instruction.where, "ret has no operands");
    instructions_.branch(instruction, return_labels_.back(), scopes);
  });
}

/// Arguments and results of a call are .param variables of the caller: the callee's names for them
/// mean the same memory.
void EntryDecoder::bind(const Operand& arguments, const std::vector<VariableDeclaration>& formals,
                        ScopeStack& scopes, Scope& inner) {
  if (arguments.elements.size() != formals.size()) {
    fail(arguments.where,
         fmt::format("expected {} arguments, found {}", formals.size(), arguments.elements.size()));
  }
  for (std::size_t i = 0; i < formals.size(); ++i) {
    const Operand& argument = arguments.elements[i];
    const std::optional<Variable> variable = scopes.find_variable(argument.name);
    if (!variable || variable->place != Variable::Place::local) {
      fail(argument.where,
           fmt::format("'{}' is not a .param variable of this function", argument.name));
    }
    inner.variables[formals[i].name] = *variable;
  }
}

/// The function that is called, its parameters named in `inner`.
const FunctionAst& EntryDecoder::resolve_call(const InstructionAst& instruction, ScopeStack& scopes,
                                              Scope& inner) {
  if (!instruction.guard.empty()) fail(instruction.where, "a guarded call is not supported");
  std::size_t next = 0;
  const std::vector<Operand>& operands = instruction.operands;
  const auto take_list = [&]() -> Operand {
    const bool has_list = next < operands.size() && operands[next].kind == Operand::Kind::list;
    Operand none;
    none.kind = Operand::Kind::list;
    none.where = instruction.where;
    return has_list ? operands[next++] : none;
  };
  const Operand results = take_list();
  if (next == operands.size() || operands[next].kind != Operand::Kind::name) {
    fail(instruction.where, "expected the name of a function");
  }
  const Operand& name = operands[next++];
  const Operand arguments = take_list();
  if (next != operands.size()) {
    fail(instruction.where,
         "indirect calls are not supported (PTX ISA, section "
         "control-flow-instructions-call)");
  }
  const auto found = functions_.find(name.name);
  if (found == functions_.end()) {
    fail(name.where, fmt::format("function '{}' is not defined in this module", name.name));
  }
  const FunctionAst& callee = *found->second;
  if (std::find(calls_.begin(), calls_.end(), &callee) != calls_.end() ||
      calls_.size() >= kCallDepthMax) {
    fail(name.where, fmt::format("recursive call of '{}' is not supported", name.name));
  }
  bind(results, callee.results, scopes, inner);
  bind(arguments, callee.parameters, scopes, inner);
  return callee;
}

void EntryDecoder::inline_body(const FunctionAst& callee, ScopeStack& inner) {
  const auto line = instructions_.line();
  calls_.push_back(&callee);
  return_labels_.push_back(new_label());
  walk(callee, inner);
  put_label(return_labels_.back());
  calls_.pop_back();
  return_labels_.pop_back();
  instructions_.set_line(line.file, line.line);
}

}  // namespace

Code decode_entry(const ModuleAst& module, const FunctionAst& entry,
                  const VariableAddresses& addresses, DecodeTrace* trace) {
  return EntryDecoder{module, addresses, trace}.decode(entry);
}

}  // namespace cpverify::sim
