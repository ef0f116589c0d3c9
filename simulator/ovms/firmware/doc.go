// Package firmware is an independent implementation of OVMS v3: a module and a client's shell,
// written from the firmware's source alone, and a recorder of a module's messages. Tests compare
// the codec and the simulated module with it. It imports no package of this project, and only tests
// import it: an error must not be repeated, or corrected, on both sides in the same way.
//
// Where a comment names a file, it is below vehicle/OVMS.V3 of
// github.com/openvehicles/Open-Vehicle-Monitoring-System-3 at commit 1aa1daff19c5 (22 August 2026);
// "server" is components/ovms_server_v3/src/ovms_server_v3.cpp.
package firmware
