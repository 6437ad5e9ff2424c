// SPDX-License-Identifier: GPL-2.0-only
/*
 * STOP_COPY migration. The state of a vGPU is one record that names its type; a target of another type refuses it, as
 * a vendor's driver does. No dirty tracking: Debian's kernel lacks the bitmap support that it needs.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "simgpu.h"

struct simgpu_record {
	char magic[8];
	char type[32]; /* without the brand's word and the id: those may differ between two driver releases */
};

struct simgpu_stream {
	struct mutex lock;
	struct simgpu_record own; /* what goes out, or what has to come in */
	struct simgpu_record in;
	size_t filled; /* of `in` */
};

static void describe(struct simgpu_vdev *vdev, struct simgpu_record *record)
{
	const struct simgpu_offer *offer = simgpu_vdev_offer(vdev);

	memset(record, 0, sizeof(*record));
	strscpy(record->magic, "SIMGPU1", sizeof(record->magic));
	snprintf(record->type, sizeof(record->type), "%s-%s", vdev->fn->card->model->name, offer->type->suffix);
}

static ssize_t stream_read(struct file *file, char __user *buf, size_t count, loff_t *unused)
{
	struct simgpu_stream *stream = file->private_data;
	ssize_t ret = simgpu_wait_for_save();

	if (ret)
		return ret;
	mutex_lock(&stream->lock);
	ret = simple_read_from_buffer(buf, count, &file->f_pos, &stream->own, sizeof(stream->own));
	mutex_unlock(&stream->lock);
	return ret;
}

/*
 * A record of another type fails here and not at the end of RESUMING: QEMU makes a failed write a failed migration, but
 * only warns about a device that does not go on to RUNNING.
 */
static ssize_t take_in(struct simgpu_stream *stream, const char __user *buf, size_t count)
{
	if (count > sizeof(stream->in) - stream->filled)
		return -ENOSPC;
	if (copy_from_user((char *)&stream->in + stream->filled, buf, count))
		return -EFAULT;
	stream->filled += count;
	if (memcmp(&stream->in, &stream->own, stream->filled))
		return -EINVAL;
	return count;
}

static ssize_t stream_write(struct file *file, const char __user *buf, size_t count, loff_t *unused)
{
	struct simgpu_stream *stream = file->private_data;
	ssize_t ret;

	mutex_lock(&stream->lock);
	ret = take_in(stream, buf, count);
	mutex_unlock(&stream->lock);
	if (ret == -EINVAL)
		pr_err("simgpu: the state that came in is not one of %s\n", stream->own.type);
	return ret;
}

static int stream_release(struct inode *inode, struct file *file)
{
	kfree(file->private_data);
	return 0;
}

static const struct file_operations stream_fops = {
	.owner = THIS_MODULE,
	.read = stream_read,
	.write = stream_write,
	.release = stream_release,
};

/* A stream for QEMU, of which the device keeps a reference of its own. */
static struct file *stream_open_for(struct simgpu_vdev *vdev, int flags)
{
	struct simgpu_stream *stream = kzalloc(sizeof(*stream), GFP_KERNEL);
	struct file *file;

	if (!stream)
		return ERR_PTR(-ENOMEM);
	mutex_init(&stream->lock);
	describe(vdev, &stream->own);
	file = anon_inode_getfile("simgpu-migration", &stream_fops, stream, flags);
	if (IS_ERR(file)) {
		kfree(stream);
		return file;
	}
	stream_open(file_inode(file), file);
	get_file(file);
	vdev->stream = file;
	return file;
}

static void drop_stream(struct simgpu_vdev *vdev)
{
	if (vdev->stream)
		fput(vdev->stream);
	vdev->stream = NULL;
}

/* Half a record is no state to run with. */
static int load(struct simgpu_vdev *vdev)
{
	struct simgpu_stream *stream = vdev->stream->private_data;
	int ret;

	mutex_lock(&stream->lock);
	ret = stream->filled == sizeof(stream->in) ? 0 : -EINVAL;
	mutex_unlock(&stream->lock);
	return ret;
}

/* One arc of the kernel's state machine; a new stream is the answer for QEMU. */
static struct file *step(struct simgpu_vdev *vdev, enum vfio_device_mig_state next)
{
	int ret = 0;

	if (next == VFIO_DEVICE_STATE_STOP_COPY)
		return stream_open_for(vdev, O_RDONLY);
	if (next == VFIO_DEVICE_STATE_RESUMING)
		return stream_open_for(vdev, O_WRONLY);
	if (vdev->state == VFIO_DEVICE_STATE_RESUMING)
		ret = load(vdev);
	drop_stream(vdev);
	return ERR_PTR(ret);
}

static struct file *simgpu_set_state(struct vfio_device *vfio, enum vfio_device_mig_state wanted)
{
	struct simgpu_vdev *vdev = to_simgpu_vdev(vfio);
	enum vfio_device_mig_state next;
	struct file *file = NULL;
	int ret;

	mutex_lock(&vdev->state_lock);
	while (vdev->state != wanted) {
		ret = vfio_mig_get_next_state(vfio, vdev->state, wanted, &next);
		file = ret ? ERR_PTR(ret) : step(vdev, next);
		if (IS_ERR(file))
			break;
		vdev->state = next;
	}
	mutex_unlock(&vdev->state_lock);
	return file;
}

static int simgpu_get_state(struct vfio_device *vfio, enum vfio_device_mig_state *state)
{
	struct simgpu_vdev *vdev = to_simgpu_vdev(vfio);

	mutex_lock(&vdev->state_lock);
	*state = vdev->state;
	mutex_unlock(&vdev->state_lock);
	return 0;
}

#ifdef SIMGPU_HAS_DATA_SIZE
static int simgpu_get_data_size(struct vfio_device *vfio, unsigned long *size)
{
	*size = sizeof(struct simgpu_record);
	return simgpu_wait_for_size();
}
#endif

static const struct vfio_migration_ops simgpu_migration_ops = {
	.migration_set_state = simgpu_set_state,
	.migration_get_state = simgpu_get_state,
#ifdef SIMGPU_HAS_DATA_SIZE
	.migration_get_data_size = simgpu_get_data_size,
#endif
};

void simgpu_migration_init(struct simgpu_vdev *vdev)
{
	vdev->vfio.migration_flags = VFIO_MIGRATION_STOP_COPY;
	vdev->vfio.mig_ops = &simgpu_migration_ops;
}

void simgpu_migration_reset(struct simgpu_vdev *vdev)
{
	mutex_lock(&vdev->state_lock);
	drop_stream(vdev);
	vdev->state = VFIO_DEVICE_STATE_RUNNING;
	mutex_unlock(&vdev->state_lock);
}
