//! What a process for functions may do: read and write its socket, use memory, look at the clock.
//!
//! The engine has no way out. This is for the case that somebody finds one: the process opens no
//! file and no socket, starts no process, and makes no memory executable.

use std::io;

/// The memory that the process may have besides that of its functions, in bytes: the program, the
/// texts that cross, and the allocator's reserves.
const RESERVE_BYTES: u64 = 2 << 30;

/// What stands between a process for functions and the system. The kernel may have less.
pub(super) fn enter(functions_bytes_max: u64) -> io::Result<()> {
    imp::limit(functions_bytes_max.saturating_add(RESERVE_BYTES))?;
    imp::filter()
}

/// Lets the process end when the thread that started it ends, or first when memory runs out, and
/// keeps others from looking into it.
pub(super) fn end_with_parent() -> io::Result<()> {
    imp::end_with_parent()
}

/// Gives a process the lowest priority.
pub(super) fn let_give_way(process: u32) {
    imp::let_give_way(process);
}

#[cfg(target_os = "linux")]
mod imp {
    use rustix::process::{
        DumpableBehavior, Pid, Resource, Rlimit, Signal, set_dumpable_behavior, set_parent_process_death_signal,
        setpriority_process, setrlimit,
    };
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    };
    use std::io;

    /// The lowest priority.
    const NICE_MAX: i32 = 19;
    const EXECUTABLE: u64 = libc::PROT_EXEC as u64;

    /// What is always allowed.
    const ALLOWED: &[i64] = &[
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_recvfrom,
        libc::SYS_sendto,
        libc::SYS_close,
        libc::SYS_futex,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_madvise,
        libc::SYS_brk,
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_nanosleep,
        libc::SYS_restart_syscall,
        libc::SYS_sched_yield,
        libc::SYS_getrandom,
        libc::SYS_gettid,
        libc::SYS_getpid,
        libc::SYS_tgkill,
        libc::SYS_rt_sigreturn,
        libc::SYS_rt_sigprocmask,
        libc::SYS_sigaltstack,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ];

    pub(super) fn end_with_parent() -> io::Result<()> {
        // A system without memory shall end this process before the node. Not every system has
        // this.
        let _ = std::fs::write("/proc/self/oom_score_adj", "500");
        rustix::thread::set_name(c"ombak-functions")?;
        set_parent_process_death_signal(Some(Signal::KILL))?;
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        // A parent that has ended before this line is noticed at the socket.
        Ok(())
    }

    pub(super) fn limit(memory_bytes_max: u64) -> io::Result<()> {
        let at_most = |bytes| Rlimit { current: Some(bytes), maximum: Some(bytes) };
        setrlimit(Resource::As, at_most(memory_bytes_max))?;
        setrlimit(Resource::Core, at_most(0))?;
        setrlimit(Resource::Fsize, at_most(0))?;
        Ok(())
    }

    /// Everything that is not allowed fails with `EPERM`: the C library tries some things and goes
    /// on without them.
    pub(super) fn filter() -> io::Result<()> {
        let mut rules: std::collections::BTreeMap<i64, Vec<SeccompRule>> =
            ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
        for call in [libc::SYS_mmap, libc::SYS_mprotect] {
            rules.insert(call, vec![not_executable()?]);
        }
        let forbidden = SeccompAction::Errno(libc::EPERM as u32);
        let arch = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
        let filter = SeccompFilter::new(rules, forbidden, SeccompAction::Allow, arch).map_err(io::Error::other)?;
        let program: BpfProgram = filter.try_into().map_err(io::Error::other)?;
        seccompiler::apply_filter_all_threads(&program).map_err(io::Error::other)
    }

    /// The third argument of `mmap` and `mprotect` says what the memory may be used for.
    fn not_executable() -> io::Result<SeccompRule> {
        let condition = SeccompCondition::new(2, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(EXECUTABLE), 0);
        SeccompRule::new(vec![condition.map_err(io::Error::other)?]).map_err(io::Error::other)
    }

    pub(super) fn let_give_way(process: u32) {
        let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
        // Where it is not allowed the process goes on as it was.
        let _ = pid.map(|pid| setpriority_process(Some(pid), NICE_MAX));
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use std::io;

    pub(super) fn end_with_parent() -> io::Result<()> {
        Ok(())
    }

    pub(super) fn limit(_memory_bytes_max: u64) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn filter() -> io::Result<()> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    pub(super) fn let_give_way(_process: u32) {}
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::process::Command;

    const INSIDE: &str = "OMBAK_TEST_INSIDE_SANDBOX";

    /// What a process in the sandbox could do of what it must not. The address is that of a
    /// listener.
    fn forbidden(address: &str) -> Vec<&'static str> {
        let is_denied = |done: io::Result<()>| done.is_err_and(|why| why.kind() == io::ErrorKind::PermissionDenied);
        let attempts = [
            ("read a file", File::open("/etc/passwd").map(drop)),
            ("write a file", fs::write("/tmp/ombak-sandbox", "x")),
            ("list a directory", fs::read_dir("/").map(drop)),
            ("connect", TcpStream::connect(address).map(drop)),
            ("listen", UdpSocket::bind("127.0.0.1:0").map(drop)),
            ("execute", Command::new("/bin/true").status().map(drop)),
            ("start a thread", std::thread::Builder::new().spawn(|| ()).map(drop)),
        ];
        attempts
            .into_iter()
            .filter(|(_, done)| done.is_ok())
            .map(|(what, _)| what)
            .chain((!is_denied(File::open("/etc/passwd").map(drop))).then_some("be refused for another reason"))
            .collect()
    }

    /// Runs in a process of its own, which then cannot leave the sandbox.
    #[test]
    fn inside() {
        let Ok(address) = std::env::var(INSIDE) else { return };
        enter(64 << 20).unwrap();
        let memory: Vec<u8> = vec![1; 16 << 20];
        assert_eq!((forbidden(&address), memory[1 << 20]), (Vec::new(), 1));
    }

    #[test]
    fn nothing_but_memory_and_time_can_be_reached() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "process::sandbox::tests::inside", "--nocapture"]).env(INSIDE, address);
        let done = command.output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&done.stderr));
    }
}
