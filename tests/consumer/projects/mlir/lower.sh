#!/bin/sh
# lower.sh MLIR_OPT MLIR_TRANSLATE LLC MODULE OBJECT: by MLIR's own passes, every function with its C interface.
set -eu
"$1" "$4" \
  --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" \
  --buffer-deallocation-pipeline --convert-bufferization-to-memref --llvm-request-c-wrappers --convert-linalg-to-loops --lower-affine \
  --convert-scf-to-cf --expand-strided-metadata --lower-affine --convert-math-to-llvm --convert-math-to-libm --convert-arith-to-llvm \
  --finalize-memref-to-llvm --convert-cf-to-llvm --convert-func-to-llvm --convert-index-to-llvm --reconcile-unrealized-casts \
  -o "$5.lowered.mlir"
"$2" --mlir-to-llvmir "$5.lowered.mlir" -o "$5.ll"
"$3" -O1 --relocation-model=pic --filetype=obj "$5.ll" -o "$5"
