// SPDX-License-Identifier: GPL-2.0-only
/* Type tables of real cards: ids, names and limits as their drivers print them. */
#include "simgpu.h"

#define TYPE(id, suffix, mib, heads, frl, res, max) { id, suffix, mib, heads, frl, res, max }

/* One GPU of a Tesla M60, driver 510. */
static const struct simgpu_type m60_types[] = {
	TYPE(11, "0B", 512, 2, 45, "2560x1600", 16),
	TYPE(12, "0Q", 512, 2, 60, "2560x1600", 16),
	TYPE(13, "1A", 1024, 1, 60, "1280x1024", 8),
	TYPE(14, "1B", 1024, 4, 45, "5120x2880", 8),
	TYPE(15, "1Q", 1024, 4, 60, "5120x2880", 8),
	TYPE(16, "2A", 2048, 1, 60, "1280x1024", 4),
	TYPE(17, "2B", 2048, 4, 45, "5120x2880", 4),
	TYPE(18, "2Q", 2048, 4, 60, "5120x2880", 4),
	TYPE(19, "4A", 4096, 1, 60, "1280x1024", 2),
	TYPE(20, "4Q", 4096, 4, 60, "5120x2880", 2),
	TYPE(21, "8A", 8192, 1, 60, "1280x1024", 1),
	TYPE(22, "8Q", 8192, 4, 60, "5120x2880", 1),
	TYPE(210, "2B4", 2048, 4, 45, "5120x2880", 4),
	TYPE(238, "1B4", 1024, 4, 45, "5120x2880", 8),
};

static const struct simgpu_type a2_types[] = {
	TYPE(742, "1B", 1024, 4, 45, "5120x2880", 16),
	TYPE(743, "2B", 2048, 4, 45, "5120x2880", 8),
	TYPE(744, "1Q", 1024, 4, 60, "5120x2880", 16),
	TYPE(745, "2Q", 2048, 4, 60, "7680x4320", 8),
	TYPE(746, "4Q", 4096, 4, 60, "7680x4320", 4),
	TYPE(747, "8Q", 8192, 4, 60, "7680x4320", 2),
	TYPE(748, "16Q", 16384, 4, 60, "7680x4320", 1),
	TYPE(749, "1A", 1024, 1, 60, "1280x1024", 16),
	TYPE(750, "2A", 2048, 1, 60, "1280x1024", 8),
	TYPE(751, "4A", 4096, 1, 60, "1280x1024", 4),
	TYPE(752, "8A", 8192, 1, 60, "1280x1024", 2),
	TYPE(753, "16A", 16384, 1, 60, "1280x1024", 1),
	TYPE(754, "4C", 4096, 1, 60, "4096x2400", 4),
	TYPE(755, "8C", 8192, 1, 60, "4096x2400", 2),
	TYPE(756, "16C", 16384, 1, 60, "4096x2400", 1),
};

/* Known from its vendor-vfio list alone, which has ids and names; heads and resolutions are those of the A2's kin. */
static const struct simgpu_type l40s_types[] = {
	TYPE(1145, "1B", 1024, 4, 45, "5120x2880", 32),
	TYPE(1146, "2B", 2048, 4, 45, "5120x2880", 24),
	TYPE(1147, "1Q", 1024, 4, 60, "5120x2880", 32),
	TYPE(1148, "2Q", 2048, 4, 60, "7680x4320", 24),
	TYPE(1149, "3Q", 3072, 4, 60, "7680x4320", 16),
	TYPE(1150, "4Q", 4096, 4, 60, "7680x4320", 12),
	TYPE(1151, "6Q", 6144, 4, 60, "7680x4320", 8),
	TYPE(1152, "8Q", 8192, 4, 60, "7680x4320", 6),
	TYPE(1153, "12Q", 12288, 4, 60, "7680x4320", 4),
	TYPE(1154, "16Q", 16384, 4, 60, "7680x4320", 3),
	TYPE(1155, "24Q", 24576, 4, 60, "7680x4320", 2),
	TYPE(1156, "48Q", 49152, 4, 60, "7680x4320", 1),
	TYPE(1157, "1A", 1024, 1, 60, "1280x1024", 32),
	TYPE(1158, "2A", 2048, 1, 60, "1280x1024", 24),
	TYPE(1159, "3A", 3072, 1, 60, "1280x1024", 16),
	TYPE(1160, "4A", 4096, 1, 60, "1280x1024", 12),
	TYPE(1161, "6A", 6144, 1, 60, "1280x1024", 8),
	TYPE(1162, "8A", 8192, 1, 60, "1280x1024", 6),
	TYPE(1163, "12A", 12288, 1, 60, "1280x1024", 4),
	TYPE(1164, "16A", 16384, 1, 60, "1280x1024", 3),
	TYPE(1165, "24A", 24576, 1, 60, "1280x1024", 2),
	TYPE(1166, "48A", 49152, 1, 60, "1280x1024", 1),
	TYPE(2164, "3B", 3072, 4, 45, "5120x2880", 16),
};

static const struct simgpu_model models[] = {
	{ "M60", "GRID", 0x13f2, 0x030000, 8192, m60_types, ARRAY_SIZE(m60_types) },
	{ "A2", "NVIDIA", 0x25b6, 0x030200, 16384, a2_types, ARRAY_SIZE(a2_types) },
	{ "L40S", "NVIDIA", 0x26b9, 0x030200, 49152, l40s_types, ARRAY_SIZE(l40s_types) },
};

const struct simgpu_model *simgpu_model_named(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(models); i++)
		if (!strcmp(models[i].name, name))
			return &models[i];
	return NULL;
}
