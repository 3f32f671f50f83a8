// Waits for LDS in kernels that copy global memory to LDS by pointers (direct=1 buffer=0).
#pragma once

namespace llvm {
class FunctionPass;
}

namespace deepgen {

/// LLVM 22 counts `global_load_lds` in lgkmcnt, like a read of LDS; later ones count it in vmcnt alone (pull
/// request 179305), and no board has told which is right. A wait for all but the last n operations that LLVM
/// counted may thus wait for nothing. This pass, behind all of LLVM's, lowers n to as many of them as are
/// LDS's own, on any path. LDS serves those of a wave in order, so that such a wait covers what LLVM meant it
/// for, wherever copies are counted and whenever they end. Where nothing is copied so, no instruction
/// changes.
llvm::FunctionPass* lds_waits_pass(); ///< the caller's

} // namespace deepgen
