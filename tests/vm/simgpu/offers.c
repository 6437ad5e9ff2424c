// SPDX-License-Identifier: GPL-2.0-only
/* The types of one function, as they are named and numbered at this moment, and the framework that shows them. */
#include <linux/slab.h>

#include "simgpu.h"

static void fill_offer(struct simgpu_fn *fn, const struct simgpu_type *type)
{
	struct simgpu_offer *offer = &fn->offers[fn->offer_count++];

	offer->type = type;
	offer->id = type->id + simgpu_id_offset();
	snprintf(offer->id_text, sizeof(offer->id_text), "%u", offer->id);
	simgpu_type_name(fn->card->model, type, offer->name, sizeof(offer->name));
	offer->mdev.sysfs_name = offer->id_text;
	offer->mdev.pretty_name = offer->name;
}

static int fill_offers(struct simgpu_fn *fn)
{
	const struct simgpu_model *model = fn->card->model;
	unsigned int i;

	fn->offers = kcalloc(model->type_count, sizeof(*fn->offers), GFP_KERNEL);
	if (!fn->offers)
		return -ENOMEM;
	for (i = 0; i < model->type_count; i++)
		if (!simgpu_type_hidden(model, &model->types[i]))
			fill_offer(fn, &model->types[i]);
	return 0;
}

/*
 * udev and libvirt have read the device's identity when it appeared, and read it again on this event. A parent of mdevs
 * needs none of ours, the mdev core sends its own.
 */
void simgpu_announce(struct simgpu_fn *fn)
{
	kobject_uevent(&fn->pdev->dev.kobj, KOBJ_CHANGE);
}

static void drop_offers(struct simgpu_fn *fn)
{
	kfree(fn->offers);
	fn->offers = NULL;
	fn->offer_count = 0;
}

int simgpu_offers_start(struct simgpu_fn *fn)
{
	int ret = fill_offers(fn);

	if (ret)
		return ret;
	/* Cards before SR-IOV know mdev alone, whatever the kernel. */
	fn->vendor_vfio = fn->pdev->is_virtfn && simgpu_wants_vendor_vfio();
	ret = fn->vendor_vfio ? simgpu_vgpu_start(fn) : simgpu_mdev_start(fn);
	if (ret)
		drop_offers(fn);
	if (!ret && fn->vendor_vfio)
		simgpu_announce(fn);
	fn->offering = !ret;
	return ret;
}

void simgpu_offers_stop(struct simgpu_fn *fn)
{
	if (!fn->offering)
		return;
	if (fn->vendor_vfio)
		simgpu_vgpu_stop(fn);
	else
		simgpu_mdev_stop(fn);
	fn->offering = false;
	drop_offers(fn);
}
