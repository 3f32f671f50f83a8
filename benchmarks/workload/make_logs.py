"""Writes logs/: 200 products of public models, as three libraries' logs would have them. Shapes are the models' published ones;
times are those of a device with 1 TFLOP/s, as no model was run.

  llm.log         hipBLASLt (mask 32): bf16; Llama 3 8B and 70B, Qwen2 7B, Gemma 2 9B, Phi-3 mini
  encoders.csv    PyTorch TunableOp: f16; BERT large, GPT-2 XL
  vision.log      oneDNN (verbose, v1): f32; ViT-L/16, BERT base, GPT-2
"""
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent / "logs"
# Name: width, width of queries, of keys and values together, of the feed-forward layer, whether that is gated; tokens.
LLM = {"Llama 3 8B": (4096, 4096, 2048, 14336), "Llama 3 70B": (8192, 8192, 2048, 28672), "Qwen2 7B": (3584, 3584, 1024, 18944),
       "Gemma 2 9B": (3584, 4096, 4096, 14336), "Phi-3 mini": (3072, 3072, 6144, 8192)}
ENCODERS = {"BERT large": (1024, (128, 512, 2048, 4096, 8192)), "GPT-2 XL": (1600, (16, 128, 512, 1024, 4096))}
VISION = {"ViT-L/16": (1024, (197, 788, 1576, 3152, 6304)), "BERT base": (768, (128, 384, 512, 2048, 3072)),
          "GPT-2": (768, (1, 16, 256, 1024, 4096))}
TOKENS = (1, 8, 64, 512, 2048)


def of_llm():
    for width, queries, keys, hidden in LLM.values():
        for n, k in ((queries + keys, width), (width, queries), (2 * hidden, width), (width, hidden)):
            for m in TOKENS:
                yield m, n, k


def of_encoders(models):
    """Queries, keys and values in one; their projection; both layers of the feed-forward part."""
    for width, tokens in models.values():
        for n, k in ((3 * width, width), (width, width), (4 * width, width), (width, 4 * width)):
            for m in tokens:
                yield m, n, k


def hipblaslt(m, n, k):
    """Column-major: its first operand is the weights, which are stored [n][k]."""
    return (f"hipblaslt-bench --api_method c -m {n} -n {m} -k {k} --lda {k} --ldb {k} --ldc {n} --ldd {n} --stride_a 0 --stride_b 0 "
            "--stride_c 0 --stride_d 0 --alpha 1.000000 --beta 0.000000 --transA T --transB N --batch_count 1 --a_type bf16_r --b_type bf16_r "
            "--c_type bf16_r --d_type bf16_r --scale_type f32_r --bias_type bf16_r --compute_type f32_r --algo_method index --solution_index 1")


def tunable(m, n, k):
    return f"GemmTunableOp_Half_TN,tn_{n}_{m}_{k}_ld_{k}_{k}_{n},Gemm_Hipblaslt_1,{2e-9 * m * n * k:.6g}"


def onednn(m, n, k):
    return ("onednn_verbose,v1,primitive,exec,cpu,matmul,brg_matmul:avx512_core,undef,src:f32::blocked:ab::f0 wei:f32::blocked:ab::f0 "
            f"bia:f32::blocked:ab::f0_mask2 dst:f32::blocked:ab::f0,attr-scratchpad:user,,{m}x{k}:{k}x{n},{2e-9 * m * n * k:.6g}")


def main():
    FOLDER.mkdir(exist_ok=True)
    llm, encoders, vision = list(of_llm()), list(of_encoders(ENCODERS)), list(of_encoders(VISION))
    if len(set(llm)) + len(set(encoders)) + len(set(vision)) != 200:
        raise SystemExit(f"{len(set(llm))} + {len(set(encoders))} + {len(set(vision))} products are not 200")
    (FOLDER / "llm.log").write_text("".join(hipblaslt(*p) + "\n" for p in llm))  # one layer's calls
    (FOLDER / "encoders.csv").write_text("Validator,PT_VERSION,2.6.0\n" + "".join(tunable(*p) + "\n" for p in encoders))
    (FOLDER / "vision.log").write_text(
        "onednn_verbose,v1,info,oneDNN v3.6.0 (commit 0)\n"
        "onednn_verbose,v1,primitive,info,template:operation,engine,primitive,implementation,prop_kind,memory_descriptors,attributes,"
        "auxiliary,problem_desc,exec_time\n" + "".join(onednn(*p) + "\n" for p in vision))


main()
