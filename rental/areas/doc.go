// Package areas reads the geometries of areas, which are GeoJSON (RFC 7946), and finds the areas
// that contain a position. It does no I/O.
package areas
