// SPDX-License-Identifier: GPL-2.0-only
/*
 * Module parameters. Those of mode 0644 may be written while the module is loaded: the faults work from the next create,
 * remove or bind on, the names and ids from the next bind on.
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "simgpu.h"

char *simgpu_driver_name = "nvidia";
module_param_named(driver_name, simgpu_driver_name, charp, 0444);
MODULE_PARM_DESC(driver_name, "name of the PCI driver, and so the prefix of mdev type ids");

static char *mode = "mdev";
module_param(mode, charp, 0644);
MODULE_PARM_DESC(mode, "framework of virtual functions: mdev, or vfio for nvidia/current_vgpu_type");

static char *models = "";
module_param(models, charp, 0644);
MODULE_PARM_DESC(models, "model by address of the physical function: 0000:01:00.0=A2,0000:00:04.0=M60");

static unsigned int id_offset;
module_param(id_offset, uint, 0644);
MODULE_PARM_DESC(id_offset, "added to every type id, as a driver update does");

static char *brand = "";
module_param(brand, charp, 0644);
MODULE_PARM_DESC(brand, "word before the type's name in place of the model's own: GRID, NVIDIA");

static char *hide_types = "";
module_param(hide_types, charp, 0644);
MODULE_PARM_DESC(hide_types, "types not offered: A2-4Q,M60-1Q");

static unsigned int fail_creates;
module_param(fail_creates, uint, 0644);
MODULE_PARM_DESC(fail_creates, "so many creates fail from now on; counts down");

static unsigned int fail_errno = EIO;
module_param(fail_errno, uint, 0644);
MODULE_PARM_DESC(fail_errno, "error number of a create that fails, 5 (EIO) by default");

static unsigned int create_delay_ms;
module_param(create_delay_ms, uint, 0644);
MODULE_PARM_DESC(create_delay_ms, "time that a create takes");

static unsigned int remove_delay_ms;
module_param(remove_delay_ms, uint, 0644);
MODULE_PARM_DESC(remove_delay_ms, "time that a remove takes");

static unsigned int register_delay_ms;
module_param(register_delay_ms, uint, 0644);
MODULE_PARM_DESC(register_delay_ms, "time from binding a device to the appearing of its types");

static bool save_hold;
module_param(save_hold, bool, 0644);
MODULE_PARM_DESC(save_hold, "the state of a vGPU is not handed out until this is 0 again; its guest stands still meanwhile");

static bool size_hold;
module_param(size_hold, bool, 0644);
MODULE_PARM_DESC(size_hold, "the size of the state of a vGPU is not told until this is 0 again; its guest works meanwhile");

static atomic_t held = ATOMIC_INIT(0);
module_param_named(held, held.counter, int, 0444);
MODULE_PARM_DESC(held, "how many wait for save_hold or size_hold now");

bool simgpu_wants_vendor_vfio(void)
{
	bool wants;

	kernel_param_lock(THIS_MODULE);
	wants = sysfs_streq(mode, "vfio");
	kernel_param_unlock(THIS_MODULE);
	return wants;
}

/* Finds "KEY" or "KEY=VALUE" in a comma-separated list; the value, "" without one, is for the caller to free. */
static char *list_lookup(char *const *list, const char *key)
{
	char *copy, *rest, *item, *value = NULL;

	kernel_param_lock(THIS_MODULE);
	copy = kstrdup(*list, GFP_KERNEL);
	kernel_param_unlock(THIS_MODULE);
	rest = copy ? strim(copy) : NULL;
	while (!value && (item = strsep(&rest, ","))) {
		char *name = strsep(&item, "=");

		if (!strcmp(name, key))
			value = kstrdup(item ? item : "", GFP_KERNEL);
	}
	kfree(copy);
	return value;
}

/* The model named for this address, else A2 for a device with SR-IOV and M60 for one without. */
const struct simgpu_model *simgpu_model_of(struct pci_dev *pf)
{
	char *name = list_lookup(&models, pci_name(pf));
	const struct simgpu_model *model;

	if (name)
		model = simgpu_model_named(name);
	else
		model = simgpu_model_named(pci_sriov_get_totalvfs(pf) > 0 ? "A2" : "M60");
	if (!model)
		dev_err(&pf->dev, "models names an unknown model: %s\n", name);
	kfree(name);
	return model;
}

unsigned int simgpu_id_offset(void)
{
	return READ_ONCE(id_offset);
}

void simgpu_type_name(const struct simgpu_model *model, const struct simgpu_type *type, char *buf, size_t size)
{
	char word[16];

	kernel_param_lock(THIS_MODULE);
	strscpy(word, sysfs_streq(brand, "") ? model->brand : brand, sizeof(word));
	kernel_param_unlock(THIS_MODULE);
	snprintf(buf, size, "%s %s-%s", strim(word), model->name, type->suffix);
}

bool simgpu_type_hidden(const struct simgpu_model *model, const struct simgpu_type *type)
{
	char name[32], *found;

	snprintf(name, sizeof(name), "%s-%s", model->name, type->suffix);
	found = list_lookup(&hide_types, name);
	kfree(found);
	return found;
}

/* Returns when the hold is off; an error if the caller is killed meanwhile. */
static int wait_while(bool *hold)
{
	bool killed = false;

	atomic_inc(&held);
	while (READ_ONCE(*hold) && !killed) {
		schedule_timeout_killable(HZ / 20);
		killed = fatal_signal_pending(current);
	}
	atomic_dec(&held);
	return killed ? -EINTR : 0;
}

int simgpu_wait_for_save(void)
{
	return wait_while(&save_hold);
}

int simgpu_wait_for_size(void)
{
	return wait_while(&size_hold);
}

static bool fail_this_create(void)
{
	bool fail;

	kernel_param_lock(THIS_MODULE);
	fail = fail_creates > 0;
	if (fail)
		fail_creates--;
	kernel_param_unlock(THIS_MODULE);
	return fail;
}

/* Called where a create talks to its card. 0, or the error that the create has to end with. */
int simgpu_fault_create(void)
{
	unsigned int ms = READ_ONCE(create_delay_ms);

	if (ms && msleep_interruptible(ms))
		return -EINTR;
	return fail_this_create() ? -(int)READ_ONCE(fail_errno) : 0;
}

void simgpu_fault_remove(void)
{
	unsigned int ms = READ_ONCE(remove_delay_ms);

	if (ms)
		msleep(ms);
}

unsigned int simgpu_fault_register_ms(void)
{
	return READ_ONCE(register_delay_ms);
}
