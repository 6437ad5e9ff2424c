// SPDX-License-Identifier: GPL-2.0-only
/* Framework "mdev": a function as parent, its types under mdev_supported_types, each slice a device of the mdev bus. */
#include <linux/module.h>
#include <linux/slab.h>

#include "simgpu.h"

static struct simgpu_fn *fn_of(struct mdev_type *mtype)
{
	return dev_get_drvdata(mtype->parent->dev);
}

static const struct simgpu_offer *offer_of(struct mdev_type *mtype)
{
	return container_of(mtype, struct simgpu_offer, mdev);
}

static int simgpu_mdev_probe(struct mdev_device *mdev)
{
	const struct simgpu_offer *offer = offer_of(mdev->type);
	struct simgpu_fn *fn = fn_of(mdev->type);
	struct simgpu_vdev *vdev;
	int ret;

	ret = simgpu_fault_create();
	if (!ret)
		ret = simgpu_slice_take(fn, offer);
	if (ret)
		return ret;
	vdev = simgpu_vdev_add(fn, &mdev->dev, offer);
	if (IS_ERR(vdev)) {
		simgpu_slice_give(fn);
		return PTR_ERR(vdev);
	}
	dev_set_drvdata(&mdev->dev, vdev);
	return 0;
}

/* Waits until whoever has the device open closes it: the kernel gives a remove no way to refuse. */
static void simgpu_mdev_remove(struct mdev_device *mdev)
{
	struct simgpu_fn *fn = fn_of(mdev->type);

	simgpu_fault_remove();
	simgpu_vdev_del(dev_get_drvdata(&mdev->dev));
	simgpu_slice_give(fn);
}

static unsigned int simgpu_mdev_available(struct mdev_type *mtype)
{
	return simgpu_slice_room(fn_of(mtype), offer_of(mtype));
}

static ssize_t simgpu_mdev_description(struct mdev_type *mtype, char *buf)
{
	const struct simgpu_type *type = offer_of(mtype)->type;

	return sysfs_emit(buf, "num_heads=%u, frl_config=%u, framebuffer=%uM, max_resolution=%s, max_instance=%u\n",
			  type->heads, type->frl, type->fb_mib, type->resolution, type->max_instance);
}

static struct mdev_driver simgpu_mdev_driver = {
	.device_api = VFIO_DEVICE_API_PCI_STRING,
	.probe = simgpu_mdev_probe,
	.remove = simgpu_mdev_remove,
	.get_available = simgpu_mdev_available,
	.show_description = simgpu_mdev_description,
	.driver = {
		.name = "nvidia-vgpu-vfio",
		.owner = THIS_MODULE,
		.mod_name = KBUILD_MODNAME,
	},
};

int simgpu_mdev_init(void)
{
	return mdev_register_driver(&simgpu_mdev_driver);
}

void simgpu_mdev_exit(void)
{
	mdev_unregister_driver(&simgpu_mdev_driver);
}

int simgpu_mdev_start(struct simgpu_fn *fn)
{
	unsigned int i;
	int ret;

	fn->mdev_types = kcalloc(fn->offer_count, sizeof(*fn->mdev_types), GFP_KERNEL);
	if (!fn->mdev_types)
		return -ENOMEM;
	for (i = 0; i < fn->offer_count; i++)
		fn->mdev_types[i] = &fn->offers[i].mdev;
	ret = mdev_register_parent(&fn->parent, &fn->pdev->dev, &simgpu_mdev_driver, fn->mdev_types, fn->offer_count);
	if (ret)
		kfree(fn->mdev_types);
	return ret;
}

void simgpu_mdev_stop(struct simgpu_fn *fn)
{
	mdev_unregister_parent(&fn->parent);
	kfree(fn->mdev_types);
}
