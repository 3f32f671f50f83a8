// The object is of MLIR; CMake wants a language to link it by.
