// SPDX-License-Identifier: GPL-2.0-only
/* Framework "vendor-vfio": the virtual function is the VFIO device, and its directory nvidia/ says what it is. */
#include <linux/sysfs.h>

#include "simgpu.h"

static const struct simgpu_offer *offer_with_id(struct simgpu_fn *fn, unsigned int id)
{
	unsigned int i;

	for (i = 0; i < fn->offer_count; i++)
		if (fn->offers[i].id == id)
			return &fn->offers[i];
	return NULL;
}

/* The list has no names of types that cannot be made now: once a function is set, not even its own. */
static ssize_t creatable_vgpu_types_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct simgpu_fn *fn = dev_get_drvdata(dev);
	ssize_t len = sysfs_emit(buf, "ID    : vGPU Name\n");
	unsigned int i;

	for (i = 0; i < fn->offer_count; i++)
		if (simgpu_slice_room(fn, &fn->offers[i]))
			len += sysfs_emit_at(buf, len, "%-5u : %s\n", fn->offers[i].id, fn->offers[i].name);
	return len;
}
static DEVICE_ATTR_RO(creatable_vgpu_types);

static ssize_t current_vgpu_type_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	const struct simgpu_offer *set = simgpu_fn_set(dev_get_drvdata(dev));

	return sysfs_emit(buf, "%u\n", set ? set->id : 0);
}

static int set_type(struct simgpu_fn *fn, unsigned int id)
{
	const struct simgpu_offer *offer = offer_with_id(fn, id);
	int ret;

	if (simgpu_fn_set(fn))
		return -EPERM;
	if (!offer)
		return -EINVAL;
	ret = simgpu_fault_create();
	return ret ? ret : simgpu_slice_take(fn, offer);
}

static ssize_t current_vgpu_type_store(struct device *dev, struct device_attribute *attr, const char *buf, size_t len)
{
	struct simgpu_fn *fn = dev_get_drvdata(dev);
	unsigned int id;
	int ret;

	if (kstrtouint(buf, 10, &id))
		return -EINVAL;
	if (id) {
		ret = set_type(fn, id);
	} else {
		simgpu_fault_remove();
		ret = simgpu_slice_clear(fn);
	}
	return ret ? ret : len;
}
static DEVICE_ATTR_RW(current_vgpu_type);

/* The driver chooses these two; they exist with a vGPU only. */
static ssize_t show_if_set(struct device *dev, char *buf)
{
	return simgpu_fn_set(dev_get_drvdata(dev)) ? sysfs_emit(buf, "0\n") : -ENXIO;
}

static ssize_t gpu_instance_id_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return show_if_set(dev, buf);
}

static ssize_t placement_id_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return show_if_set(dev, buf);
}

static ssize_t accept_nothing(struct device *dev, struct device_attribute *attr, const char *buf, size_t len)
{
	return -EPERM;
}
static DEVICE_ATTR(gpu_instance_id, 0644, gpu_instance_id_show, accept_nothing);
static DEVICE_ATTR(placement_id, 0644, placement_id_show, accept_nothing);

static ssize_t vgpu_params_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "\n");
}
static DEVICE_ATTR(vgpu_params, 0644, vgpu_params_show, accept_nothing);

static ssize_t warm_update_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "0\n");
}
static DEVICE_ATTR(warm_update, 0644, warm_update_show, accept_nothing);

static struct attribute *vgpu_attrs[] = {
	&dev_attr_creatable_vgpu_types.attr,
	&dev_attr_current_vgpu_type.attr,
	&dev_attr_gpu_instance_id.attr,
	&dev_attr_placement_id.attr,
	&dev_attr_vgpu_params.attr,
	&dev_attr_warm_update.attr,
	NULL,
};

static const struct attribute_group vgpu_group = {
	.name = "nvidia",
	.attrs = vgpu_attrs,
};

int simgpu_vgpu_start(struct simgpu_fn *fn)
{
	struct device *dev = &fn->pdev->dev;
	int ret;

	fn->vdev = simgpu_vdev_add(fn, dev, NULL);
	if (IS_ERR(fn->vdev))
		return PTR_ERR(fn->vdev);
	ret = sysfs_create_group(&dev->kobj, &vgpu_group);
	if (ret)
		simgpu_vdev_del(fn->vdev);
	return ret;
}

void simgpu_vgpu_stop(struct simgpu_fn *fn)
{
	/* First the files: nobody sets a type from here on. Then the device, which waits for its user. */
	sysfs_remove_group(&fn->pdev->dev.kobj, &vgpu_group);
	simgpu_vdev_del(fn->vdev);
	simgpu_slice_clear(fn);
}
