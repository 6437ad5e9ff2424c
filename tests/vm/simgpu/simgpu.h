/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * simgpu - a vGPU vendor driver without a GPU, for tests.
 *
 * A card is one physical GPU: its framebuffer and the equal-size rule. A function is a PCI function of a card that
 * our driver is bound to: the card itself (classic, many slices) or one of its SR-IOV virtual functions (0 or 1).
 * An offer is one vGPU type as one function shows it. A slice is what a create takes from the card.
 *
 *   pci.c        binding, SR-IOV, identity of the PCI device      params.c   module parameters and faults
 *   models.c     the type tables                                  card.c     the books of a card
 *   offers.c     types of a function, ids and names               mdev.c     framework "mdev"
 *   vgpu_sysfs.c framework "vendor-vfio"                          vfio.c     what QEMU opens
 *   migration.c  STOP_COPY migration
 */
#ifndef SIMGPU_H
#define SIMGPU_H

#include <linux/list.h>
#include <linux/mdev.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/vfio.h>
#include <linux/workqueue.h>

#define SIMGPU_VENDOR 0x10de

struct simgpu_type {
	unsigned int id;
	const char *suffix; /* "4Q" */
	unsigned int fb_mib;
	unsigned int heads;
	unsigned int frl;
	const char *resolution;
	unsigned int max_instance;
};

struct simgpu_model {
	const char *name;  /* "A2" */
	const char *brand; /* "NVIDIA", the word before the name */
	u16 device;
	u32 class;
	unsigned int fb_mib;
	const struct simgpu_type *types;
	unsigned int type_count;
};

struct simgpu_card {
	struct list_head node; /* in the list of cards, under its lock */
	unsigned int users;    /* bound functions, under the list's lock */
	struct pci_dev *pf;
	const struct simgpu_model *model;

	struct mutex lock; /* the rest, and `set` and `open` of the card's functions */
	unsigned int slices;
	unsigned int slice_mib; /* size of every slice, 0 while there is none */
};

struct simgpu_offer {
	struct mdev_type mdev;
	const struct simgpu_type *type;
	unsigned int id;
	char id_text[12];
	char name[64];
};

/* What the PCI device was before it took a card's identity. */
struct simgpu_identity {
	u16 vendor;
	u16 device;
	u32 class;
};

struct simgpu_vdev;

struct simgpu_fn {
	struct pci_dev *pdev;
	struct simgpu_identity was;
	struct simgpu_card *card;
	struct simgpu_offer *offers;
	unsigned int offer_count;
	bool vendor_vfio;
	bool offering; /* framework registered */
	struct delayed_work late;

	const struct simgpu_offer *set; /* slice of a virtual function, under card->lock */
	bool open;                      /* its VFIO device is open, under card->lock */

	struct mdev_parent parent;    /* framework mdev */
	struct mdev_type **mdev_types;
	struct simgpu_vdev *vdev;     /* framework vendor-vfio */
};

enum { SIMGPU_CONFIG_SIZE = 256 };

struct simgpu_vdev {
	struct vfio_device vfio;
	struct simgpu_fn *fn;
	const struct simgpu_offer *offer; /* mdev: fixed at create. vendor-vfio: NULL, fn->set counts */
	u8 config[SIMGPU_CONFIG_SIZE];

	struct mutex state_lock; /* the migration state and its stream */
	enum vfio_device_mig_state state;
	struct file *stream;
};

/* params.c */
extern char *simgpu_driver_name;
bool simgpu_wants_vendor_vfio(void);
const struct simgpu_model *simgpu_model_of(struct pci_dev *pf);
unsigned int simgpu_id_offset(void);
int simgpu_wait_for_save(void);
int simgpu_wait_for_size(void);
void simgpu_type_name(const struct simgpu_model *model, const struct simgpu_type *type, char *buf, size_t size);
bool simgpu_type_hidden(const struct simgpu_model *model, const struct simgpu_type *type);
int simgpu_fault_create(void);
void simgpu_fault_remove(void);
unsigned int simgpu_fault_register_ms(void);

/* models.c */
const struct simgpu_model *simgpu_model_named(const char *name);

/* card.c */
struct simgpu_card *simgpu_card_get(struct pci_dev *pf);
void simgpu_card_put(struct simgpu_card *card);
int simgpu_slice_take(struct simgpu_fn *fn, const struct simgpu_offer *offer);
void simgpu_slice_give(struct simgpu_fn *fn);
int simgpu_slice_clear(struct simgpu_fn *fn);
unsigned int simgpu_slice_room(struct simgpu_fn *fn, const struct simgpu_offer *offer);
const struct simgpu_offer *simgpu_fn_set(struct simgpu_fn *fn);
int simgpu_fn_open(struct simgpu_fn *fn);
void simgpu_fn_close(struct simgpu_fn *fn);

/* offers.c */
void simgpu_announce(struct simgpu_fn *fn);
int simgpu_offers_start(struct simgpu_fn *fn);
void simgpu_offers_stop(struct simgpu_fn *fn);

/* mdev.c */
int simgpu_mdev_init(void);
void simgpu_mdev_exit(void);
int simgpu_mdev_start(struct simgpu_fn *fn);
void simgpu_mdev_stop(struct simgpu_fn *fn);

/* vgpu_sysfs.c */
int simgpu_vgpu_start(struct simgpu_fn *fn);
void simgpu_vgpu_stop(struct simgpu_fn *fn);

/* vfio.c */
struct simgpu_vdev *simgpu_vdev_add(struct simgpu_fn *fn, struct device *dev, const struct simgpu_offer *offer);
void simgpu_vdev_del(struct simgpu_vdev *vdev);
const struct simgpu_offer *simgpu_vdev_offer(struct simgpu_vdev *vdev);

/* migration.c */
void simgpu_migration_init(struct simgpu_vdev *vdev);
void simgpu_migration_reset(struct simgpu_vdev *vdev);

static inline struct simgpu_vdev *to_simgpu_vdev(struct vfio_device *vfio)
{
	return container_of(vfio, struct simgpu_vdev, vfio);
}

#endif
