/* SPDX-License-Identifier: GPL-2.0-only */
/* Differences between the kernels that simgpu builds on: 6.1 (Debian 12) and 6.12 (Debian 13). */
#ifndef SIMGPU_COMPAT_H
#define SIMGPU_COMPAT_H

#include <linux/module.h>
#include <linux/version.h>
#include <linux/vfio.h>

/* Until 6.2 a VFIO driver freed its device itself, and there was no iommufd behind VFIO nor a size of the stream. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define SIMGPU_FREES_DEVICE 1
#define SIMGPU_IOMMUFD_OPS
#else
#define SIMGPU_HAS_DATA_SIZE 1
#define SIMGPU_IOMMUFD_BASE                                   \
	.bind_iommufd = vfio_iommufd_emulated_bind,           \
	.unbind_iommufd = vfio_iommufd_emulated_unbind,       \
	.attach_ioas = vfio_iommufd_emulated_attach_ioas
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
#define SIMGPU_IOMMUFD_OPS SIMGPU_IOMMUFD_BASE,
#else
#define SIMGPU_IOMMUFD_OPS SIMGPU_IOMMUFD_BASE, .detach_ioas = vfio_iommufd_emulated_detach_ioas,
#endif
#endif

/* The argument became a string in 6.13. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define SIMGPU_IMPORT_IOMMUFD()
#elif LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#define SIMGPU_IMPORT_IOMMUFD() MODULE_IMPORT_NS(IOMMUFD)
#else
#define SIMGPU_IMPORT_IOMMUFD() MODULE_IMPORT_NS("IOMMUFD")
#endif

#endif
