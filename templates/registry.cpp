// The list of all templates: a new family is one line here.
#include "base/text/error.h"
#include "templates/amd/amd_matrix.h"
#include "templates/amd/attention/mfma_attention.h"
#include "templates/cpu/attention/cpu_attention.h"
#include "templates/cpu/cpu_dot.h"
#include "templates/cpu/cpu_tile.h"
#include "templates/cpu/rows/cpu_rows.h"
#include "templates/gpu/gemv/gemv.h"
#include "templates/gpu/rows/gpu_rows.h"
#include "templates/gpu/simt/simt.h"
#include "templates/nvidia/attention/mma_attention.h"
#include "templates/nvidia/hopper_attention/hopper_attention.h"
#include "templates/nvidia/hopper_ws/hopper_ws.h"
#include "templates/nvidia/mma_sync/mma_sync.h"

namespace deepgen {
namespace {

std::vector<const Template*>& registry() {
  static const CpuAttention cpu_attention;
  static const CpuDot cpu_dot;
  static const CpuRows cpu_rows;
  static const CpuTile cpu_tile;
  static const Gemv gemv;
  static const GpuRows gpu_rows;
  static const HopperAttention hopper_attention;
  static const HopperWs hopper_ws;
  static const Mfma mfma;
  static const MfmaAttention mfma_attention;
  static const MmaAttention mma_attention;
  static const MmaSync mma_sync;
  static const Simt simt;
  static const Wmma wmma;
  static std::vector<const Template*> all = {
      &cpu_attention, &cpu_dot, &cpu_rows,       &cpu_tile,      &gemv,     &gpu_rows, &hopper_attention,
      &hopper_ws,     &mfma,    &mfma_attention, &mma_attention, &mma_sync, &simt,     &wmma};
  return all;
}

} // namespace

const std::vector<const Template*>& templates() { return registry(); }
void register_template(const Template* t) { registry().push_back(t); }
void use_only_template(const Template* t) { registry() = {t}; }

const Template& find_template(const std::string& name) {
  std::string known;
  for (const Template* t : registry()) {
    if (t->name() == name) return *t;
    known += (known.empty() ? "" : ", ") + t->name();
  }
  throw Error("unknown template '" + name + "'", "", "", "this version has: " + known);
}

} // namespace deepgen
