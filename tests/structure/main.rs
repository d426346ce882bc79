//! Tests of the shape of the workspace, in one program.

mod architecture;
mod crate_edges;
mod frozen_fixtures;
mod links;
mod member_rooms;
mod module_circles;
mod module_floors;
mod one_place;
mod prose_width;
mod scenarios;
mod simulated_world;
