-- Rows of a stage of the network for record-11.sql: a cell in each of the two forms of `pattern`, a search with UDP, and two
-- intervals of the first sample on both machines.
INSERT INTO network_stage VALUES(0,'between','[{"name":"node1","ranks":[0],"addresses":["10.1.0.1"],"link_speed":"1250000000 B/s","congestion":["reno","cubic"]},{"name":"node2","ranks":[1],"addresses":["10.1.0.2"],"link_speed":"1250000000 B/s","congestion":["reno","cubic"]},{"name":"node3","ranks":[2],"addresses":["10.1.0.3"],"link_speed":"1250000000 B/s","congestion":["reno","cubic"]}]');
INSERT INTO network_cell VALUES(0,0,'node1 to node2, TCP, one flow','{"pair":{"from":0,"to":1}}','tcp',1);
INSERT INTO network_cell VALUES(0,1,'2 clients to 1 server, TCP, one flow, 1 process, reno, buffer 64 KiB','{"pattern":{"clients-to-servers":{"clients":2,"servers":1}},"settings":{"processes":1,"congestion":"reno","buffer":"65536 B"}}','tcp',1);
INSERT INTO network_cell VALUES(0,2,'node1 to node2, UDP, one flow','{"pair":{"from":0,"to":1}}','udp',1);
INSERT INTO network_sample VALUES(1,0,0,0,NULL);
INSERT INTO network_sample VALUES(2,0,1,0,NULL);
INSERT INTO network_sample VALUES(3,0,2,0,500000000);
INSERT INTO flow VALUES(1,0,0,1,1000000000,1000000000,1000000000,1000000000,100000000,200000000,7,2000000,1000000,1448,'cubic',2626560,NULL,NULL,NULL,NULL,NULL);
INSERT INTO flow VALUES(2,0,0,2,250000000,1000000000,250000000,1000000000,100000000,200000000,3,4000000,1000000,1448,'reno',131072,NULL,NULL,NULL,NULL,NULL);
INSERT INTO flow VALUES(2,1,1,2,500000000,1000000000,500000000,1000000000,100000000,200000000,4,4000000,1000000,1448,'reno',131072,NULL,NULL,NULL,NULL,NULL);
INSERT INTO flow VALUES(3,0,0,1,500000000,1000000000,500000000,1000000000,100000000,200000000,NULL,NULL,NULL,NULL,NULL,NULL,62500,62500,0,NULL,NULL);
INSERT INTO network_interval VALUES(1,0,0,0,500000000,0);
INSERT INTO network_interval VALUES(1,1,0,500000000,1000000000,7);
INSERT INTO network_interval VALUES(1,2,1,0,500000000,0);
INSERT INTO network_interval VALUES(1,3,1,500000000,1000000000,0);
INSERT INTO link_interval VALUES(1,0,'eth0',1000,750000000);
INSERT INTO link_interval VALUES(1,1,'eth0',1000,250000000);
INSERT INTO link_interval VALUES(1,2,'eth0',750000000,1000);
INSERT INTO link_interval VALUES(1,3,'eth0',250000000,1000);
