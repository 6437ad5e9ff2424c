-- As schema 4, and beside it an instance whose guest is to come running. Schema 5.
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE instance (
    uuid           TEXT    NOT NULL PRIMARY KEY,
    name           TEXT    NOT NULL,
    owner          TEXT    NOT NULL CHECK (owner IN ('mdevirt', 'caller')),
    request_digest TEXT    NOT NULL,
    created_usec   INTEGER NOT NULL
, flavor TEXT, plain INTEGER NOT NULL DEFAULT 0 CHECK (plain IN (0, 1))) STRICT, WITHOUT ROWID;
INSERT INTO instance VALUES('6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c001','web-01','mdevirt','fdb264bce19b70bc6b1bd102ae81765fe714b57a12c448acabcf40ca2a36793b',1796102374426639,'resources:VGPU=1,trait:CUSTOM_SILVER=required',0);
INSERT INTO instance VALUES('6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c002','web-02','caller','6e7f3e29539edb09451ac3612f449afb9608acc2eb460f37b79b40d2f88009ad',1796102374539231,'resources:VGPU=1,trait:CUSTOM_SILVER=required',1);
INSERT INTO instance VALUES('6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c003','web-03','mdevirt','0f3e29539edb09451ac3612f449afb9608acc2eb460f37b79b40d2f88009ad6e',1796102375000000,'resources:VGPU=1',0);
CREATE TABLE own_device (
    uuid         TEXT    NOT NULL,
    parent       TEXT    NOT NULL,
    type_id      TEXT    NOT NULL,
    type_name    TEXT    NOT NULL,
    created_usec INTEGER NOT NULL,
    PRIMARY KEY (uuid, parent)
) STRICT, WITHOUT ROWID;
INSERT INTO own_device VALUES('478537ec-eb3f-4e49-aa5f-6d43173f9586','0000:84:00.0','nvidia-18','GRID M60-2Q',1796102374426900);
INSERT INTO own_device VALUES('f27703a0-c76a-40fe-8b06-2fbd3ddee692','0000:84:00.0','nvidia-18','GRID M60-2Q',1796102374539482);
INSERT INTO own_device VALUES('f6616e95-4f18-4bed-8176-497f6bbacb9f','0000:85:00.0','nvidia-22','GRID M60-8Q',1796102374722706);
CREATE TABLE saga (
    nr             INTEGER NOT NULL PRIMARY KEY,
    id             TEXT    NOT NULL UNIQUE,
    op             TEXT    NOT NULL,
    version        INTEGER NOT NULL,
    instance       TEXT    NOT NULL,
    state          TEXT    NOT NULL CHECK (state IN ('running', 'unwinding', 'done', 'failed', 'stuck')),
    operation_id   TEXT    UNIQUE,
    request_digest TEXT    NOT NULL,
    params         TEXT    NOT NULL CHECK (json_valid(params)),
    result         TEXT    CHECK (json_valid(result)),
    created_usec   INTEGER NOT NULL
) STRICT;
INSERT INTO saga VALUES(1,'0cc923ed-efe2-490a-9880-50a85dc76b2f','spawn',1,'6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c001','done',NULL,'fdb264bce19b70bc6b1bd102ae81765fe714b57a12c448acabcf40ca2a36793b','{"devices":[{"card":"0000:84:00.0","claim":{"card":"0000:84:00.0","created_usec":1796102374426350,"device_api":"vfio-pci","group":"","id":"394e78f6-30cd-44f4-97a2-7434e06c57cc","identity":{"device_api":"vfio-pci","device_id":null,"framebuffer_mib":2048,"heads":4,"max_resolution":"5120x2880","name":"GRID M60-2Q","type_id":null,"vendor_id":"0x10de"},"instance":"6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c001","mdev_type":"nvidia-18","parent":"0000:84:00.0","resource_class":"VGPU","role":"primary","state":"reserved","traits":["CUSTOM_SILVER"],"type_name":"GRID M60-2Q","uuid":"478537ec-eb3f-4e49-aa5f-6d43173f9586","was_parked":false},"reused":false}],"domain_xml":"<domain type=''test''>\n  <name>web-01</name>\n  <uuid>6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c001</uuid>\n  <memory unit=''MiB''>2048</memory>\n  <vcpu>2</vcpu>\n  <os>\n    <type arch=''x86_64''>hvm</type>\n  </os>\n  <devices>\n    <hostdev mode=''subsystem'' type=''mdev'' managed=''no'' model=''vfio-pci'' display=''off''>\n      <source>\n        <address uuid=''478537ec-eb3f-4e49-aa5f-6d43173f9586''/>\n      </source>\n    </hostdev>\n  </devices>\n</domain>\n","instance":"6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c001","keep_devices":false,"leaves":false,"name":"web-01","start":false}','{"devices":[{"address":null,"device":"mdev_478537ec_eb3f_4e49_aa5f_6d43173f9586_0000_84_00_0","mdev_type":"nvidia-18","parent":"0000:84:00.0","role":"primary","state":"in-use","trait":"CUSTOM_SILVER","type_name":"GRID M60-2Q","uuid":"478537ec-eb3f-4e49-aa5f-6d43173f9586"}],"domain_xml":"<domain type=''test''>\n  <name>web-01</name>\n  <uuid>6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c001</uuid>\n  <memory unit=''MiB''>2048</memory>\n  <vcpu>2</vcpu>\n  <os>\n    <type arch=''x86_64''>hvm</type>\n  </os>\n  <devices>\n    <hostdev mode=''subsystem'' type=''mdev'' managed=''no'' model=''vfio-pci'' display=''off''>\n      <source>\n        <address uuid=''478537ec-eb3f-4e49-aa5f-6d43173f9586''/>\n      </source>\n    </hostdev>\n  </devices>\n</domain>\n","instance":"6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c001"}',1796102374426712);
INSERT INTO saga VALUES(2,'57d863fe-308d-4207-800f-9458c273dc1f','spawn',1,'6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c002','done',NULL,'6e7f3e29539edb09451ac3612f449afb9608acc2eb460f37b79b40d2f88009ad','{"devices":[{"card":"0000:84:00.0","claim":{"card":"0000:84:00.0","created_usec":1796102374538943,"device_api":"vfio-pci","group":"","id":"c302619a-a189-469b-a37f-ccbf0bfa67df","identity":{"device_api":"vfio-pci","device_id":null,"framebuffer_mib":2048,"heads":4,"max_resolution":"5120x2880","name":"GRID M60-2Q","type_id":null,"vendor_id":"0x10de"},"instance":"6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c002","mdev_type":"nvidia-18","parent":"0000:84:00.0","resource_class":"VGPU","role":"primary","state":"reserved","traits":["CUSTOM_SILVER"],"type_name":"GRID M60-2Q","uuid":"f27703a0-c76a-40fe-8b06-2fbd3ddee692","was_parked":false},"reused":false}],"domain_xml":"<domain type=''test''>\n  <name>web-02</name>\n  <uuid>6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c002</uuid>\n  <memory unit=''MiB''>2048</memory>\n  <vcpu>2</vcpu>\n  <os>\n    <type arch=''x86_64''>hvm</type>\n  </os>\n  <devices>\n    <hostdev mode=''subsystem'' type=''mdev'' managed=''no'' model=''vfio-pci'' display=''off''>\n      <source>\n        <address uuid=''f27703a0-c76a-40fe-8b06-2fbd3ddee692''/>\n      </source>\n    </hostdev>\n  </devices>\n</domain>\n","instance":"6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c002","keep_devices":false,"leaves":false,"name":"web-02","start":false}','{"devices":[{"address":null,"device":"mdev_f27703a0_c76a_40fe_8b06_2fbd3ddee692_0000_84_00_0","mdev_type":"nvidia-18","parent":"0000:84:00.0","role":"primary","state":"in-use","trait":"CUSTOM_SILVER","type_name":"GRID M60-2Q","uuid":"f27703a0-c76a-40fe-8b06-2fbd3ddee692"}],"domain_xml":"<domain type=''test''>\n  <name>web-02</name>\n  <uuid>6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c002</uuid>\n  <memory unit=''MiB''>2048</memory>\n  <vcpu>2</vcpu>\n  <os>\n    <type arch=''x86_64''>hvm</type>\n  </os>\n  <devices>\n    <hostdev mode=''subsystem'' type=''mdev'' managed=''no'' model=''vfio-pci'' display=''off''>\n      <source>\n        <address uuid=''f27703a0-c76a-40fe-8b06-2fbd3ddee692''/>\n      </source>\n    </hostdev>\n  </devices>\n</domain>\n","instance":"6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c002"}',1796102374539307);
INSERT INTO saga VALUES(3,'5d1cad12-506e-4640-8769-e7653abe2941','resize-prepare',1,'6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c001','done',NULL,'c20b09c5b2e15c8475ce95538195a49676bb0713be917ad0269dc538fae02398','{"devices":[{"card":"0000:85:00.0","claim":{"card":"0000:85:00.0","created_usec":1796102374722270,"device_api":"vfio-pci","group":"","id":"c0202484-f87c-444f-ad63-c6e66004bcdf","identity":{"device_api":"vfio-pci","device_id":null,"framebuffer_mib":8192,"heads":4,"max_resolution":"5120x2880","name":"GRID M60-8Q","type_id":null,"vendor_id":"0x10de"},"instance":"6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c001","mdev_type":"nvidia-22","parent":"0000:85:00.0","resource_class":"VGPU","role":"incoming","state":"reserved","traits":["CUSTOM_GOLD"],"type_name":"GRID M60-8Q","uuid":"f6616e95-4f18-4bed-8176-497f6bbacb9f","was_parked":false},"reused":false}],"instance":"6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c001","keep_devices":false,"leaves":false,"moving":{"baggage":{"display":"off","new_flavor":"resources:VGPU=1,trait:CUSTOM_GOLD=required","old_flavor":"resources:VGPU=1,trait:CUSTOM_SILVER=required","running":false},"instance":"6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c001","kind":"resize","phase":"prepared"},"name":"web-01","others":[{"card":"0000:84:00.0","claim":{"card":"0000:84:00.0","created_usec":1796102374426350,"device_api":"vfio-pci","group":"","id":"394e78f6-30cd-44f4-97a2-7434e06c57cc","identity":{"device_api":"vfio-pci","device_id":null,"framebuffer_mib":2048,"heads":4,"max_resolution":"5120x2880","name":"GRID M60-2Q","type_id":null,"vendor_id":"0x10de"},"instance":"6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c001","mdev_type":"nvidia-18","parent":"0000:84:00.0","resource_class":"VGPU","role":"primary","state":"in-use","traits":["CUSTOM_SILVER"],"type_name":"GRID M60-2Q","uuid":"478537ec-eb3f-4e49-aa5f-6d43173f9586","was_parked":false},"reused":false}],"start":false}','{"devices":[{"address":null,"device":"mdev_f6616e95_4f18_4bed_8176_497f6bbacb9f_0000_85_00_0","mdev_type":"nvidia-22","parent":"0000:85:00.0","role":"incoming","state":"ready","trait":"CUSTOM_GOLD","type_name":"GRID M60-8Q","uuid":"f6616e95-4f18-4bed-8176-497f6bbacb9f"}],"domain_xml":null,"instance":"6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c001"}',1796102374722461);
INSERT INTO saga VALUES(4,'0001fbae-714a-4722-9fcd-5b1d2e5e5f7b','resize-finish',1,'6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c001','running',NULL,'391313bb71f6bee80a3069971234d6cbc797b7707653a725535ef4b8a55f6fbe','{"devices":[{"card":"0000:85:00.0","claim":{"card":"0000:85:00.0","created_usec":1796102374722270,"device_api":"vfio-pci","group":"","id":"c0202484-f87c-444f-ad63-c6e66004bcdf","identity":{"device_api":"vfio-pci","device_id":null,"framebuffer_mib":8192,"heads":4,"max_resolution":"5120x2880","name":"GRID M60-8Q","type_id":null,"vendor_id":"0x10de"},"instance":"6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c001","mdev_type":"nvidia-22","parent":"0000:85:00.0","resource_class":"VGPU","role":"incoming","state":"ready","traits":["CUSTOM_GOLD"],"type_name":"GRID M60-8Q","uuid":"f6616e95-4f18-4bed-8176-497f6bbacb9f","was_parked":false},"reused":false}],"domain_xml":"<domain type=''test''>\n  <name>web-01</name>\n  <uuid>6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c001</uuid>\n  <memory unit=''MiB''>2048</memory>\n  <vcpu>2</vcpu>\n  <os>\n    <type arch=''x86_64''>hvm</type>\n  </os>\n  <devices>\n    <hostdev mode=''subsystem'' type=''mdev'' managed=''no'' model=''vfio-pci'' display=''off''>\n      <source>\n        <address uuid=''f6616e95-4f18-4bed-8176-497f6bbacb9f''/>\n      </source>\n    </hostdev>\n  </devices>\n</domain>\n","flavor":"resources:VGPU=1,trait:CUSTOM_GOLD=required","instance":"6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c001","keep_devices":false,"leaves":false,"moving":{"baggage":{"display":"off","new_flavor":"resources:VGPU=1,trait:CUSTOM_GOLD=required","old_flavor":"resources:VGPU=1,trait:CUSTOM_SILVER=required","old_xml":"<domain type=''test''>\n  <name>web-01</name>\n  <uuid>6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c001</uuid>\n  <memory unit=''MiB''>2048</memory>\n  <vcpu>2</vcpu>\n  <os>\n    <type arch=''x86_64''>hvm</type>\n  </os>\n  <devices>\n    <hostdev mode=''subsystem'' type=''mdev'' managed=''no'' model=''vfio-pci'' display=''off''>\n      <source>\n        <address uuid=''478537ec-eb3f-4e49-aa5f-6d43173f9586''/>\n      </source>\n    </hostdev>\n  </devices>\n</domain>\n","running":true},"instance":"6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c001","kind":"resize","phase":"finished"},"name":"web-01","old_xml":"<domain type=''test''>\n  <name>web-01</name>\n  <uuid>6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c001</uuid>\n  <memory unit=''MiB''>2048</memory>\n  <vcpu>2</vcpu>\n  <os>\n    <type arch=''x86_64''>hvm</type>\n  </os>\n  <devices>\n    <hostdev mode=''subsystem'' type=''mdev'' managed=''no'' model=''vfio-pci'' display=''off''>\n      <source>\n        <address uuid=''478537ec-eb3f-4e49-aa5f-6d43173f9586''/>\n      </source>\n    </hostdev>\n  </devices>\n</domain>\n","others":[{"card":"0000:84:00.0","claim":{"card":"0000:84:00.0","created_usec":1796102374426350,"device_api":"vfio-pci","group":"","id":"394e78f6-30cd-44f4-97a2-7434e06c57cc","identity":{"device_api":"vfio-pci","device_id":null,"framebuffer_mib":2048,"heads":4,"max_resolution":"5120x2880","name":"GRID M60-2Q","type_id":null,"vendor_id":"0x10de"},"instance":"6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c001","mdev_type":"nvidia-18","parent":"0000:84:00.0","resource_class":"VGPU","role":"primary","state":"in-use","traits":["CUSTOM_SILVER"],"type_name":"GRID M60-2Q","uuid":"478537ec-eb3f-4e49-aa5f-6d43173f9586","was_parked":false},"reused":false}],"start":true}',NULL,1796102374804986);
CREATE TABLE saga_event (
    saga_id TEXT    NOT NULL REFERENCES saga (id) ON DELETE CASCADE,
    seq     INTEGER NOT NULL CHECK (seq > 0),
    step    INTEGER NOT NULL CHECK (step >= 0),
    name    TEXT    NOT NULL,
    event   TEXT    NOT NULL CHECK (event IN ('started', 'done', 'failed', 'undo-started', 'undone')),
    payload TEXT    CHECK (json_valid(payload)),
    at_usec INTEGER NOT NULL,
    PRIMARY KEY (saga_id, seq)
) STRICT, WITHOUT ROWID;
INSERT INTO saga_event VALUES('0001fbae-714a-4722-9fcd-5b1d2e5e5f7b',1,0,'stop_domain','started',NULL,1796102374805229);
INSERT INTO saga_event VALUES('0001fbae-714a-4722-9fcd-5b1d2e5e5f7b',2,0,'stop_domain','done','{"stopped":"6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c001"}',1796102374820929);
INSERT INTO saga_event VALUES('0001fbae-714a-4722-9fcd-5b1d2e5e5f7b',3,1,'redefine_domain','started',NULL,1796102374820929);
INSERT INTO saga_event VALUES('0001fbae-714a-4722-9fcd-5b1d2e5e5f7b',4,1,'redefine_domain','done','{"domain":"6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c001"}',1796102374829167);
INSERT INTO saga_event VALUES('0001fbae-714a-4722-9fcd-5b1d2e5e5f7b',5,2,'make_device.0','started',NULL,1796102374829167);
INSERT INTO saga_event VALUES('0001fbae-714a-4722-9fcd-5b1d2e5e5f7b',6,2,'make_device.0','done','{"parent":"0000:85:00.0","type_id":"nvidia-22","uuid":"f6616e95-4f18-4bed-8176-497f6bbacb9f"}',1796102374829902);
INSERT INTO saga_event VALUES('0001fbae-714a-4722-9fcd-5b1d2e5e5f7b',7,3,'start_domain','started',NULL,1796102374829902);
INSERT INTO saga_event VALUES('0cc923ed-efe2-490a-9880-50a85dc76b2f',1,0,'make_device.0','started',NULL,1796102374426900);
INSERT INTO saga_event VALUES('0cc923ed-efe2-490a-9880-50a85dc76b2f',2,0,'make_device.0','done','{"parent":"0000:84:00.0","type_id":"nvidia-18","uuid":"478537ec-eb3f-4e49-aa5f-6d43173f9586"}',1796102374459267);
INSERT INTO saga_event VALUES('0cc923ed-efe2-490a-9880-50a85dc76b2f',3,1,'define_domain','started',NULL,1796102374459267);
INSERT INTO saga_event VALUES('0cc923ed-efe2-490a-9880-50a85dc76b2f',4,1,'define_domain','done','{"domain":"6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c001"}',1796102374480688);
INSERT INTO saga_event VALUES('0cc923ed-efe2-490a-9880-50a85dc76b2f',5,2,'start_domain','started',NULL,1796102374480688);
INSERT INTO saga_event VALUES('0cc923ed-efe2-490a-9880-50a85dc76b2f',6,2,'start_domain','done','{"running":"6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c001"}',1796102374483535);
INSERT INTO saga_event VALUES('57d863fe-308d-4207-800f-9458c273dc1f',1,0,'make_device.0','started',NULL,1796102374539482);
INSERT INTO saga_event VALUES('57d863fe-308d-4207-800f-9458c273dc1f',2,0,'make_device.0','done','{"parent":"0000:84:00.0","type_id":"nvidia-18","uuid":"f27703a0-c76a-40fe-8b06-2fbd3ddee692"}',1796102374566629);
INSERT INTO saga_event VALUES('57d863fe-308d-4207-800f-9458c273dc1f',3,1,'define_domain','started',NULL,1796102374566629);
INSERT INTO saga_event VALUES('57d863fe-308d-4207-800f-9458c273dc1f',4,1,'define_domain','done','{"domain":"6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c002"}',1796102374584450);
INSERT INTO saga_event VALUES('57d863fe-308d-4207-800f-9458c273dc1f',5,2,'start_domain','started',NULL,1796102374584450);
INSERT INTO saga_event VALUES('57d863fe-308d-4207-800f-9458c273dc1f',6,2,'start_domain','done','{"running":"6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c002"}',1796102374604802);
INSERT INTO saga_event VALUES('5d1cad12-506e-4640-8769-e7653abe2941',1,0,'make_device.0','started',NULL,1796102374722706);
INSERT INTO saga_event VALUES('5d1cad12-506e-4640-8769-e7653abe2941',2,0,'make_device.0','done','{"parent":"0000:85:00.0","type_id":"nvidia-22","uuid":"f6616e95-4f18-4bed-8176-497f6bbacb9f"}',1796102374749247);
INSERT INTO saga_event VALUES('5d1cad12-506e-4640-8769-e7653abe2941',3,1,'record','started',NULL,1796102374749247);
INSERT INTO saga_event VALUES('5d1cad12-506e-4640-8769-e7653abe2941',4,1,'record','done','null',1796102374769502);
CREATE TABLE fact (
    key   TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE meaning (
    kind     TEXT NOT NULL CHECK (kind IN ('type', 'trait')),
    word     TEXT NOT NULL,
    parent   TEXT NOT NULL,
    identity TEXT NOT NULL CHECK (json_valid(identity)),
    type_id  TEXT NOT NULL,
    seen     TEXT NOT NULL CHECK (json_valid(seen)),
    PRIMARY KEY (kind, word, parent)
) STRICT, WITHOUT ROWID;
INSERT INTO meaning VALUES('trait','CUSTOM_GOLD','0000:84:00.0','{"device_api":"vfio-pci","device_id":null,"framebuffer_mib":8192,"heads":4,"max_resolution":"5120x2880","name":"GRID M60-8Q","type_id":null,"vendor_id":"0x10de"}','nvidia-22','{"device_api":"vfio-pci","device_id":null,"framebuffer_mib":8192,"heads":4,"max_resolution":"5120x2880","name":"GRID M60-8Q","type_id":null,"vendor_id":"0x10de"}');
INSERT INTO meaning VALUES('trait','CUSTOM_GOLD','0000:85:00.0','{"device_api":"vfio-pci","device_id":null,"framebuffer_mib":8192,"heads":4,"max_resolution":"5120x2880","name":"GRID M60-8Q","type_id":null,"vendor_id":"0x10de"}','nvidia-22','{"device_api":"vfio-pci","device_id":null,"framebuffer_mib":8192,"heads":4,"max_resolution":"5120x2880","name":"GRID M60-8Q","type_id":null,"vendor_id":"0x10de"}');
INSERT INTO meaning VALUES('type','GRID M60-2Q','0000:84:00.0','{"device_api":"vfio-pci","device_id":null,"framebuffer_mib":2048,"heads":4,"max_resolution":"5120x2880","name":"GRID M60-2Q","type_id":null,"vendor_id":"0x10de"}','nvidia-18','{"device_api":"vfio-pci","device_id":null,"framebuffer_mib":2048,"heads":4,"max_resolution":"5120x2880","name":"GRID M60-2Q","type_id":null,"vendor_id":"0x10de"}');
INSERT INTO meaning VALUES('type','GRID M60-8Q','0000:85:00.0','{"device_api":"vfio-pci","device_id":null,"framebuffer_mib":8192,"heads":4,"max_resolution":"5120x2880","name":"GRID M60-8Q","type_id":null,"vendor_id":"0x10de"}','nvidia-22','{"device_api":"vfio-pci","device_id":null,"framebuffer_mib":8192,"heads":4,"max_resolution":"5120x2880","name":"GRID M60-8Q","type_id":null,"vendor_id":"0x10de"}');
CREATE TABLE shift (
    nr      INTEGER NOT NULL PRIMARY KEY,
    at_usec INTEGER NOT NULL,
    kind    TEXT    NOT NULL CHECK (kind IN ('type', 'trait')),
    word    TEXT    NOT NULL,
    parent  TEXT    NOT NULL,
    shift   TEXT    NOT NULL CHECK (shift IN ('renumbered', 'renamed', 'drifted', 'accepted')),
    was     TEXT    NOT NULL,
    now     TEXT    NOT NULL,
    reason  TEXT    NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS "claim" (
    id             TEXT    NOT NULL PRIMARY KEY,
    instance       TEXT    NOT NULL REFERENCES instance (uuid),
    uuid           TEXT    NOT NULL,
    parent         TEXT    NOT NULL,
    mdev_type      TEXT    NOT NULL,
    type_name      TEXT    NOT NULL,
    identity       TEXT    CHECK (json_valid(identity)),
    card           TEXT,
    device_api     TEXT    NOT NULL,
    resource_class TEXT    NOT NULL,
    grp            TEXT    NOT NULL,
    traits         TEXT    NOT NULL CHECK (json_type(traits) = 'array'),
    state          TEXT    NOT NULL
        CHECK (state IN ('reserved', 'ready', 'in-use', 'parked', 'releasing', 'missing', 'lost')),
    was_parked     INTEGER NOT NULL DEFAULT 0 CHECK (was_parked IN (0, 1)),
    role           TEXT    NOT NULL CHECK (role IN ('primary', 'outgoing', 'incoming')),
    created_usec   INTEGER NOT NULL,
    -- A virtual device belongs to at most one claim.
    UNIQUE (uuid, parent),
    FOREIGN KEY (uuid, parent) REFERENCES own_device (uuid, parent)
) STRICT, WITHOUT ROWID;
INSERT INTO claim VALUES('394e78f6-30cd-44f4-97a2-7434e06c57cc','6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c001','478537ec-eb3f-4e49-aa5f-6d43173f9586','0000:84:00.0','nvidia-18','GRID M60-2Q','{"device_api":"vfio-pci","device_id":null,"framebuffer_mib":2048,"heads":4,"max_resolution":"5120x2880","name":"GRID M60-2Q","type_id":null,"vendor_id":"0x10de"}','0000:84:00.0','vfio-pci','VGPU','','["CUSTOM_SILVER"]','parked',0,'primary',1796102374426350);
INSERT INTO claim VALUES('c0202484-f87c-444f-ad63-c6e66004bcdf','6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c001','f6616e95-4f18-4bed-8176-497f6bbacb9f','0000:85:00.0','nvidia-22','GRID M60-8Q','{"device_api":"vfio-pci","device_id":null,"framebuffer_mib":8192,"heads":4,"max_resolution":"5120x2880","name":"GRID M60-8Q","type_id":null,"vendor_id":"0x10de"}','0000:85:00.0','vfio-pci','VGPU','','["CUSTOM_GOLD"]','ready',0,'incoming',1796102374722270);
INSERT INTO claim VALUES('c302619a-a189-469b-a37f-ccbf0bfa67df','6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c002','f27703a0-c76a-40fe-8b06-2fbd3ddee692','0000:84:00.0','nvidia-18','GRID M60-2Q','{"device_api":"vfio-pci","device_id":null,"framebuffer_mib":2048,"heads":4,"max_resolution":"5120x2880","name":"GRID M60-2Q","type_id":null,"vendor_id":"0x10de"}','0000:84:00.0','vfio-pci','VGPU','','["CUSTOM_SILVER"]','in-use',0,'primary',1796102374538943);
CREATE TABLE move (
    instance TEXT NOT NULL PRIMARY KEY REFERENCES instance (uuid) ON DELETE CASCADE,
    kind     TEXT NOT NULL CHECK (kind IN ('resize', 'out', 'in', 'live-out', 'live-in', 'rescue')),
    phase    TEXT NOT NULL CHECK (phase IN ('prepared', 'finished')),
    baggage  TEXT NOT NULL CHECK (json_valid(baggage))
) STRICT, WITHOUT ROWID;
INSERT INTO move VALUES('6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c001','resize','prepared','{"display":"off","new_flavor":"resources:VGPU=1,trait:CUSTOM_GOLD=required","old_flavor":"resources:VGPU=1,trait:CUSTOM_SILVER=required","running":false}');
INSERT INTO move VALUES('6d0e1c58-4a2f-4d36-9f3b-2b7a8e91c003','live-in','prepared','{"display":"off","peer":"gpu-01","running":true}');
CREATE UNIQUE INDEX saga_live ON saga (instance) WHERE state IN ('running', 'unwinding');
CREATE INDEX saga_stuck ON saga (nr) WHERE state = 'stuck';
CREATE INDEX saga_of_instance ON saga (instance, nr);
CREATE INDEX shift_of_word ON shift (kind, word, nr);
CREATE INDEX claim_of_instance ON claim (instance);
COMMIT;
PRAGMA user_version = 5;
