// SPDX-License-Identifier: GPL-2.0-only
/*
 * Binding to PCI devices. A card is bound by driver_override; its virtual functions follow by themselves, because they
 * inherit the card's vendor id and still have QEMU's subsystem vendor. A real NVIDIA device never matches.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "compat.h"
#include "simgpu.h"

/*
 * sysfs, and so libvirt, show these members of struct pci_dev and not config space. Nothing in the kernel uses them
 * between here and the restore.
 */
static void take_identity(struct simgpu_fn *fn)
{
	struct pci_dev *pdev = fn->pdev;

	fn->was.vendor = pdev->vendor;
	fn->was.device = pdev->device;
	fn->was.class = pdev->class;
	pdev->vendor = SIMGPU_VENDOR;
	pdev->device = fn->card->model->device;
	pdev->class = fn->card->model->class;
}

static void restore_identity(struct simgpu_fn *fn)
{
	fn->pdev->vendor = fn->was.vendor;
	fn->pdev->device = fn->was.device;
	fn->pdev->class = fn->was.class;
}

/* An SR-IOV card offers nothing itself, its virtual functions do. */
static bool has_offers(struct pci_dev *pdev)
{
	return pdev->is_virtfn || pci_sriov_get_totalvfs(pdev) <= 0;
}

static void offer_late(struct work_struct *work)
{
	struct simgpu_fn *fn = container_of(to_delayed_work(work), struct simgpu_fn, late);
	int ret = simgpu_offers_start(fn);

	if (ret)
		dev_err(&fn->pdev->dev, "registering the types failed: %d\n", ret);
}

static int start_offers(struct simgpu_fn *fn)
{
	unsigned int ms = simgpu_fault_register_ms();

	if (!has_offers(fn->pdev)) {
		simgpu_announce(fn);
		return 0;
	}
	if (!ms)
		return simgpu_offers_start(fn);
	schedule_delayed_work(&fn->late, msecs_to_jiffies(ms));
	return 0;
}

static void unbind(struct simgpu_fn *fn)
{
	pci_set_drvdata(fn->pdev, NULL);
	restore_identity(fn);
	simgpu_card_put(fn->card);
	kfree(fn);
}

static int simgpu_pci_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct simgpu_fn *fn = kzalloc(sizeof(*fn), GFP_KERNEL);
	int ret;

	if (!fn)
		return -ENOMEM;
	fn->pdev = pdev;
	fn->card = simgpu_card_get(pci_physfn(pdev));
	if (IS_ERR(fn->card)) {
		ret = PTR_ERR(fn->card);
		kfree(fn);
		return ret;
	}
	INIT_DELAYED_WORK(&fn->late, offer_late);
	take_identity(fn);
	pci_set_drvdata(pdev, fn);
	ret = start_offers(fn);
	if (ret)
		unbind(fn);
	return ret;
}

static void simgpu_pci_remove(struct pci_dev *pdev)
{
	struct simgpu_fn *fn = pci_get_drvdata(pdev);

	if (pdev->is_physfn)
		pci_disable_sriov(pdev);
	cancel_delayed_work_sync(&fn->late);
	simgpu_offers_stop(fn);
	unbind(fn);
}

static const struct pci_device_id simgpu_pci_ids[] = {
	{ PCI_DEVICE_SUB(SIMGPU_VENDOR, PCI_ANY_ID, PCI_VENDOR_ID_REDHAT_QUMRANET, PCI_ANY_ID) },
	{ }
};

static struct pci_driver simgpu_pci_driver = {
	.id_table = simgpu_pci_ids,
	.probe = simgpu_pci_probe,
	.remove = simgpu_pci_remove,
	.sriov_configure = pci_sriov_configure_simple,
	.driver_managed_dma = true,
};

static int __init simgpu_init(void)
{
	int ret = simgpu_mdev_init();

	if (ret)
		return ret;
	simgpu_pci_driver.name = simgpu_driver_name;
	ret = pci_register_driver(&simgpu_pci_driver);
	if (ret)
		simgpu_mdev_exit();
	return ret;
}

static void __exit simgpu_exit(void)
{
	pci_unregister_driver(&simgpu_pci_driver);
	simgpu_mdev_exit();
}

module_init(simgpu_init);
module_exit(simgpu_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("vGPU vendor driver without a GPU, for tests");
MODULE_SOFTDEP("pre: vfio_iommu_type1");
SIMGPU_IMPORT_IOMMUFD();
