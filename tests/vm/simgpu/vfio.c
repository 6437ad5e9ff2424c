// SPDX-License-Identifier: GPL-2.0-only
/*
 * What QEMU opens: a PCI device that is nothing but 256 bytes of config space. No regions, no interrupts; the guest
 * sees a display controller that no driver of it wants.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "simgpu.h"

#define REGION_SHIFT 40
#define REGION_OFFSET(index) ((u64)(index) << REGION_SHIFT)

static int simgpu_vfio_init(struct vfio_device *vfio)
{
	struct simgpu_vdev *vdev = to_simgpu_vdev(vfio);

	mutex_init(&vdev->state_lock);
	return 0;
}

static void simgpu_vfio_release(struct vfio_device *vfio)
{
	mutex_destroy(&to_simgpu_vdev(vfio)->state_lock);
#ifdef SIMGPU_FREES_DEVICE
	vfio_free_device(vfio);
#endif
}

/* The vGPU type behind the device, NULL for a virtual function that is not set. */
const struct simgpu_offer *simgpu_vdev_offer(struct simgpu_vdev *vdev)
{
	return vdev->offer ? vdev->offer : simgpu_fn_set(vdev->fn);
}

static void put_u16(u8 *config, unsigned int at, u16 value)
{
	config[at] = value & 0xff;
	config[at + 1] = value >> 8;
}

static void fill_config(struct simgpu_vdev *vdev)
{
	const struct simgpu_model *model = vdev->fn->card->model;

	memset(vdev->config, 0, sizeof(vdev->config));
	put_u16(vdev->config, PCI_VENDOR_ID, SIMGPU_VENDOR);
	put_u16(vdev->config, PCI_DEVICE_ID, model->device);
	put_u16(vdev->config, PCI_CLASS_DEVICE, PCI_CLASS_DISPLAY_3D);
	put_u16(vdev->config, PCI_SUBSYSTEM_VENDOR_ID, SIMGPU_VENDOR);
	put_u16(vdev->config, PCI_SUBSYSTEM_ID, simgpu_vdev_offer(vdev)->type->id);
}

static int simgpu_vfio_open(struct vfio_device *vfio)
{
	struct simgpu_vdev *vdev = to_simgpu_vdev(vfio);
	int ret = vdev->offer ? 0 : simgpu_fn_open(vdev->fn);

	if (ret)
		return ret;
	fill_config(vdev);
	simgpu_migration_reset(vdev);
	return 0;
}

static void simgpu_vfio_close(struct vfio_device *vfio)
{
	struct simgpu_vdev *vdev = to_simgpu_vdev(vfio);

	simgpu_migration_reset(vdev);
	if (!vdev->offer)
		simgpu_fn_close(vdev->fn);
}

/* How much of an access lies in config space, or an error. */
static ssize_t config_span(size_t count, loff_t pos, unsigned int *at)
{
	u64 offset = pos & (REGION_OFFSET(1) - 1);

	if (pos >> REGION_SHIFT != VFIO_PCI_CONFIG_REGION_INDEX || offset >= SIMGPU_CONFIG_SIZE)
		return -EINVAL;
	*at = offset;
	return min_t(size_t, count, SIMGPU_CONFIG_SIZE - offset);
}

static ssize_t simgpu_vfio_read(struct vfio_device *vfio, char __user *buf, size_t count, loff_t *pos)
{
	unsigned int at;
	ssize_t span = config_span(count, *pos, &at);

	if (span > 0 && copy_to_user(buf, to_simgpu_vdev(vfio)->config + at, span))
		return -EFAULT;
	if (span > 0)
		*pos += span;
	return span;
}

/* Only the command register keeps what is written. */
static ssize_t simgpu_vfio_write(struct vfio_device *vfio, const char __user *buf, size_t count, loff_t *pos)
{
	struct simgpu_vdev *vdev = to_simgpu_vdev(vfio);
	unsigned int at;
	ssize_t span = config_span(count, *pos, &at);

	if (span == 2 && at == PCI_COMMAND && copy_from_user(vdev->config + at, buf, span))
		return -EFAULT;
	if (span > 0)
		*pos += span;
	return span;
}

/* Reads the head of an ioctl's argument up to its last member that we know. */
static int fetch_arg(void *arg, void __user *user, size_t size)
{
	u32 argsz;

	if (copy_from_user(arg, user, size))
		return -EFAULT;
	memcpy(&argsz, arg, sizeof(argsz)); /* the first member of each */
	return argsz < size ? -EINVAL : 0;
}

static long get_info(void __user *user)
{
	const size_t size = offsetofend(struct vfio_device_info, num_irqs);
	struct vfio_device_info info = {};
	int ret = fetch_arg(&info, user, size);

	if (ret)
		return ret;
	info.flags = VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET;
	info.num_regions = VFIO_PCI_NUM_REGIONS;
	info.num_irqs = VFIO_PCI_NUM_IRQS;
	return copy_to_user(user, &info, size) ? -EFAULT : 0;
}

static long get_region_info(void __user *user)
{
	const size_t size = offsetofend(struct vfio_region_info, offset);
	struct vfio_region_info info = {};
	int ret = fetch_arg(&info, user, size);

	if (ret)
		return ret;
	if (info.index >= VFIO_PCI_NUM_REGIONS)
		return -EINVAL;
	info.flags = 0;
	info.cap_offset = 0;
	info.size = 0;
	info.offset = REGION_OFFSET(info.index);
	if (info.index == VFIO_PCI_CONFIG_REGION_INDEX) {
		info.size = SIMGPU_CONFIG_SIZE;
		info.flags = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;
	}
	return copy_to_user(user, &info, size) ? -EFAULT : 0;
}

static long get_irq_info(void __user *user)
{
	const size_t size = offsetofend(struct vfio_irq_info, count);
	struct vfio_irq_info info = {};
	int ret = fetch_arg(&info, user, size);

	if (ret)
		return ret;
	if (info.index >= VFIO_PCI_NUM_IRQS)
		return -EINVAL;
	info.flags = VFIO_IRQ_INFO_EVENTFD;
	info.count = 0;
	return copy_to_user(user, &info, size) ? -EFAULT : 0;
}

static long simgpu_vfio_ioctl(struct vfio_device *vfio, unsigned int cmd, unsigned long arg)
{
	void __user *user = (void __user *)arg;

	switch (cmd) {
	case VFIO_DEVICE_GET_INFO:
		return get_info(user);
	case VFIO_DEVICE_GET_REGION_INFO:
		return get_region_info(user);
	case VFIO_DEVICE_GET_IRQ_INFO:
		return get_irq_info(user);
	case VFIO_DEVICE_SET_IRQS:
		return 0;
	case VFIO_DEVICE_RESET:
		simgpu_migration_reset(to_simgpu_vdev(vfio));
		return 0;
	default:
		return -ENOTTY;
	}
}

static const struct vfio_device_ops simgpu_vfio_ops = {
	.name = "nvidia-vfio",
	.init = simgpu_vfio_init,
	.release = simgpu_vfio_release,
	.open_device = simgpu_vfio_open,
	.close_device = simgpu_vfio_close,
	.read = simgpu_vfio_read,
	.write = simgpu_vfio_write,
	.ioctl = simgpu_vfio_ioctl,
	SIMGPU_IOMMUFD_OPS
};

struct simgpu_vdev *simgpu_vdev_add(struct simgpu_fn *fn, struct device *dev, const struct simgpu_offer *offer)
{
	struct simgpu_vdev *vdev;
	int ret;

	vdev = vfio_alloc_device(simgpu_vdev, vfio, dev, &simgpu_vfio_ops);
	if (IS_ERR(vdev))
		return vdev;
	vdev->fn = fn;
	vdev->offer = offer;
	simgpu_migration_init(vdev);
	ret = vfio_register_emulated_iommu_dev(&vdev->vfio);
	if (!ret)
		return vdev;
	vfio_put_device(&vdev->vfio);
	return ERR_PTR(ret);
}

void simgpu_vdev_del(struct simgpu_vdev *vdev)
{
	vfio_unregister_group_dev(&vdev->vfio);
	vfio_put_device(&vdev->vfio);
}
