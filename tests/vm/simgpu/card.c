// SPDX-License-Identifier: GPL-2.0-only
/*
 * The books of a card. Two rules of the vendor: all slices of a card have the same framebuffer size (the letter of the
 * type may differ), and together they fit. A virtual function holds one slice, a card without SR-IOV any number.
 */
#include <linux/slab.h>

#include "simgpu.h"

static LIST_HEAD(cards);
static DEFINE_MUTEX(cards_lock);

static struct simgpu_card *card_new(struct pci_dev *pf)
{
	const struct simgpu_model *model = simgpu_model_of(pf);
	struct simgpu_card *card;

	if (!model)
		return ERR_PTR(-EINVAL);
	card = kzalloc(sizeof(*card), GFP_KERNEL);
	if (!card)
		return ERR_PTR(-ENOMEM);
	mutex_init(&card->lock);
	card->pf = pci_dev_get(pf);
	card->model = model;
	list_add(&card->node, &cards);
	return card;
}

static struct simgpu_card *card_find(struct pci_dev *pf)
{
	struct simgpu_card *card;

	list_for_each_entry(card, &cards, node)
		if (card->pf == pf)
			return card;
	return card_new(pf);
}

/* The card of a physical function; made by its first bound function, gone with the last. */
struct simgpu_card *simgpu_card_get(struct pci_dev *pf)
{
	struct simgpu_card *card;

	mutex_lock(&cards_lock);
	card = card_find(pf);
	if (!IS_ERR(card))
		card->users++;
	mutex_unlock(&cards_lock);
	return card;
}

void simgpu_card_put(struct simgpu_card *card)
{
	mutex_lock(&cards_lock);
	if (--card->users == 0) {
		WARN_ON(card->slices);
		list_del(&card->node);
		pci_dev_put(card->pf);
		mutex_destroy(&card->lock);
		kfree(card);
	}
	mutex_unlock(&cards_lock);
}

static int room_on_card(const struct simgpu_card *card, const struct simgpu_type *type, unsigned int *room)
{
	unsigned int fits = card->model->fb_mib / type->fb_mib;

	*room = 0;
	if (card->slices && card->slice_mib != type->fb_mib)
		return -EINVAL;
	fits = min(fits, type->max_instance);
	if (card->slices >= fits)
		return -ENOSPC;
	*room = fits - card->slices;
	return 0;
}

/* How many more slices of this type the function can make now. */
unsigned int simgpu_slice_room(struct simgpu_fn *fn, const struct simgpu_offer *offer)
{
	unsigned int room;

	mutex_lock(&fn->card->lock);
	room_on_card(fn->card, offer->type, &room);
	if (fn->pdev->is_virtfn)
		room = fn->set ? 0 : min(room, 1U);
	mutex_unlock(&fn->card->lock);
	return room;
}

int simgpu_slice_take(struct simgpu_fn *fn, const struct simgpu_offer *offer)
{
	struct simgpu_card *card = fn->card;
	unsigned int room;
	int ret;

	mutex_lock(&card->lock);
	if (fn->pdev->is_virtfn && fn->set)
		ret = fn->vendor_vfio ? -EPERM : -ENOSPC;
	else
		ret = room_on_card(card, offer->type, &room);
	if (!ret) {
		card->slices++;
		card->slice_mib = offer->type->fb_mib;
		if (fn->pdev->is_virtfn)
			fn->set = offer;
	}
	mutex_unlock(&card->lock);
	return ret;
}

static void give_locked(struct simgpu_fn *fn)
{
	fn->set = NULL;
	if (--fn->card->slices == 0)
		fn->card->slice_mib = 0;
}

void simgpu_slice_give(struct simgpu_fn *fn)
{
	mutex_lock(&fn->card->lock);
	give_locked(fn);
	mutex_unlock(&fn->card->lock);
}

/* A virtual function forgets its type, as the write of 0 asks for. */
int simgpu_slice_clear(struct simgpu_fn *fn)
{
	int ret = 0;

	mutex_lock(&fn->card->lock);
	if (!fn->set)
		ret = -EPERM;
	else if (fn->open)
		ret = -EBUSY;
	else
		give_locked(fn);
	mutex_unlock(&fn->card->lock);
	return ret;
}

const struct simgpu_offer *simgpu_fn_set(struct simgpu_fn *fn)
{
	const struct simgpu_offer *set;

	mutex_lock(&fn->card->lock);
	set = fn->set;
	mutex_unlock(&fn->card->lock);
	return set;
}

int simgpu_fn_open(struct simgpu_fn *fn)
{
	int ret = 0;

	mutex_lock(&fn->card->lock);
	if (fn->set)
		fn->open = true;
	else
		ret = -ENODEV;
	mutex_unlock(&fn->card->lock);
	if (ret)
		dev_err(&fn->pdev->dev, "current_vgpu_type of VF not configured\n");
	return ret;
}

void simgpu_fn_close(struct simgpu_fn *fn)
{
	mutex_lock(&fn->card->lock);
	fn->open = false;
	mutex_unlock(&fn->card->lock);
}
