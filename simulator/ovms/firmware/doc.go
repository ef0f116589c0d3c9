// Package firmware is a second opinion on OVMS v3: a module and a client's shell, written from the
// firmware's source alone, and a recorder of what a module says. Tests hold the codec and the
// simulated module against it. It imports nothing of ours, and nothing but tests imports it: who
// repairs one side must not repair the other with the same thought.
//
// Where a comment names a file, it is below vehicle/OVMS.V3 of
// github.com/openvehicles/Open-Vehicle-Monitoring-System-3 at commit 1aa1daff19c5 (22 August 2026);
// "server" is components/ovms_server_v3/src/ovms_server_v3.cpp.
package firmware
