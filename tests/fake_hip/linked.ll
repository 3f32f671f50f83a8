; A kernel as compilers make them, for the reader of code objects.
target triple = "amdgcn-amd-amdhsa"

@lds = internal addrspace(3) global [256 x float] poison, align 16

define amdgpu_kernel void @deepgen_kernel(ptr addrspace(1) %d, i64 %n, float %alpha, ptr addrspace(1) %a) #0 {
  %slot = getelementptr [256 x float], ptr addrspace(3) @lds, i32 0, i64 %n
  store volatile float %alpha, ptr addrspace(3) %slot
  %x = load float, ptr addrspace(1) %a
  store float %x, ptr addrspace(1) %d
  ret void
}

attributes #0 = { "amdgpu-flat-work-group-size"="1,256" "amdgpu-implicitarg-num-bytes"="0" }

!llvm.module.flags = !{!0}
!0 = !{i32 1, !"amdhsa_code_object_version", i32 400}
