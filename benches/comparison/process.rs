//! Costs of a process: allocations, processor time, memory. Also pins processes to cores.

use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use core::time::Duration;
use std::alloc::{GlobalAlloc, Layout, System};

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// The system's allocator, with counters that can be switched on.
pub(crate) struct Counting;

static IS_COUNTING: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static LIVE_BYTES: AtomicI64 = AtomicI64::new(0);

fn count(allocations: u64, freed: usize, taken: usize) {
    if IS_COUNTING.load(Ordering::Relaxed) {
        ALLOCATIONS.fetch_add(allocations, Ordering::Relaxed);
        LIVE_BYTES.fetch_add(taken as i64 - freed as i64, Ordering::Relaxed);
    }
}

// SAFETY: passes every call unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, 0, layout.size());
        // SAFETY: the caller upholds the contract of this function, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(1, 0, layout.size());
        // SAFETY: the caller upholds the contract of this function, which is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(1, layout.size(), size);
        // SAFETY: the caller upholds the contract of this function, which is the same.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, layout.size(), 0);
        // SAFETY: the caller upholds the contract of this function, which is the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Counts the allocations of all threads while `work` runs.
pub(crate) fn allocations<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let (result, allocations, _) = counting(work);
    (result, allocations)
}

/// Returns the change of the number of bytes on the heap over `work`.
pub(crate) fn live_bytes<T>(work: impl FnOnce() -> T) -> (T, i64) {
    let (result, _, bytes) = counting(work);
    (result, bytes)
}

fn counting<T>(work: impl FnOnce() -> T) -> (T, u64, i64) {
    ALLOCATIONS.store(0, Ordering::Relaxed);
    LIVE_BYTES.store(0, Ordering::Relaxed);
    IS_COUNTING.store(true, Ordering::Relaxed);
    let result = work();
    IS_COUNTING.store(false, Ordering::Relaxed);
    (result, ALLOCATIONS.load(Ordering::Relaxed), LIVE_BYTES.load(Ordering::Relaxed))
}

/// Processor time used by this process.
pub(crate) fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).expect("a time used is not negative");
    Duration::from_secs(seconds) + Duration::from_nanos(time.tv_nsec.unsigned_abs())
}

/// Processor time used by the first thread of another process. A server does nearly all of its work
/// there.
pub(crate) fn cpu_of(process: u32) -> Duration {
    let schedstat = std::fs::read_to_string(format!("/proc/{process}/schedstat"));
    let schedstat = schedstat.expect("the process is alive");
    let nanos = schedstat.split(' ').next().and_then(|it| it.parse().ok());
    Duration::from_nanos(nanos.expect("Linux begins with the time on a processor"))
}

/// Resident memory of this process, in bytes.
pub(crate) fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux says");
    let pages = statm.split(' ').nth(1).and_then(|it| it.parse::<u64>().ok());
    pages.expect("the second number") * rustix::param::page_size() as u64
}

/// Pins a process, or this thread if `None`, to `core`. `core` of `None` allows every core.
pub(crate) fn pin(process: Option<Pid>, core: Option<usize>) {
    let mut cores = CpuSet::new();
    match core {
        Some(core) => cores.set(core),
        None => (0..cpus()).for_each(|core| cores.set(core)),
    }
    sched_setaffinity(process, &cores).expect("the process is ours and the core exists");
}

fn cpus() -> usize {
    let parent = sched_getaffinity(Some(rustix::process::getppid().expect("a parent")));
    let everywhere = parent.unwrap_or_else(|_| {
        let mut first = CpuSet::new();
        first.set(0);
        first
    });
    everywhere.count() as usize
}

/// Describes the conditions that affect the figures besides the code.
pub(crate) fn host() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("?").to_owned();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{cores} cores; load before the first part {load}")
}
