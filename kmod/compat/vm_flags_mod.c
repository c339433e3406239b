// SPDX-License-Identifier: GPL-2.0
/* 6.3: flags of a mapping are changed by functions. */
#include <linux/mm.h>

void probe(struct vm_area_struct *vma);

void probe(struct vm_area_struct *vma)
{
	vm_flags_mod(vma, VM_DONTCOPY, VM_MAYEXEC);
}
