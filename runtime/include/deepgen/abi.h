/* The version of what crosses between generated libraries, programs and the runtime: symbols, structs,
 * numbers. */
#ifndef DEEPGEN_ABI_H
#define DEEPGEN_ABI_H

/* Raised with every change of a struct, a number or what a function means. Version 1 was that of DeepGen 0.1.
   The symbols of the runtime carry it: deepgen_run_gemm() is deepgen_run_gemm_abi2 to the linker. So several
   versions can live in one process without calling each other, and a library of one does not link with a
   runtime of another. */
#ifndef DEEPGEN_ABI /* a test of several versions sets others */
#define DEEPGEN_ABI 2
#endif

/* The first words of structs: their size and this tag. Together they are no address, as its upper bits are
   not zero: a struct of version 1, which begins with a pointer, is told apart. */
#define DEEPGEN_ABI_TAG (0x44470000u + DEEPGEN_ABI)

#define DEEPGEN_SYMBOL_TEXT(name, abi) #name "_abi" #abi
#define DEEPGEN_SYMBOL(name, abi) DEEPGEN_SYMBOL_TEXT(name, abi)
/* Stands behind the declaration of a function of the runtime. All else of the runtime is hidden. */
#define DEEPGEN_API(name) __asm__(DEEPGEN_SYMBOL(name, DEEPGEN_ABI)) __attribute__((visibility("default")))

#ifdef __cplusplus
/* The name of a struct whose constructor a compiler may emit as a symbol of its own, which a process has
 * once. */
#define DEEPGEN_VERSIONED __attribute__((abi_tag(DEEPGEN_SYMBOL(deepgen, DEEPGEN_ABI))))
#define DEEPGEN_DEFAULT(value) = value
#else
#define DEEPGEN_VERSIONED
#define DEEPGEN_DEFAULT(value)
#endif

#endif
