// SPDX-License-Identifier: BSD-2-Clause
//! rust [SECONDS]: a release binary, without debug information; closures and a trait object in the
//! chain.

use std::env;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

static STOP: AtomicBool = AtomicBool::new(false);

trait Step {
    fn step(&self, x: u64) -> u64;
}

struct Adder(u64);

#[inline(never)]
fn rs_leaf(x: u64) -> u64 {
    let mut a = [x, 1, 2, 3];
    for i in 0..24u64 {
        a[(i & 3) as usize] = black_box(a[((i + 1) & 3) as usize].wrapping_mul(31).wrapping_add(i));
    }
    black_box(&a)[0]
}

#[inline(never)]
fn rs_hot(mut x: u64) -> u64 {
    while !STOP.load(Ordering::Relaxed) {
        x = rs_leaf(x).wrapping_add(1);
    }
    black_box(x)
}

impl Step for Adder {
    #[inline(never)]
    fn step(&self, x: u64) -> u64 {
        black_box(rs_hot(x)).wrapping_add(self.0)
    }
}

#[inline(never)]
fn rs_run(s: &dyn Step) -> u64 {
    black_box(s.step(1)).wrapping_add(1)
}

fn main() {
    let seconds = env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(0);
    if seconds > 0 {
        thread::spawn(move || {
            thread::sleep(Duration::from_secs(seconds));
            STOP.store(true, Ordering::Relaxed);
        });
    }
    black_box(rs_run(black_box(&Adder(2))));
}
