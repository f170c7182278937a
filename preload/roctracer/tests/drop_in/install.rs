//! The packages, headers alone and with the libraries, under the paths of the manual.

use crate::place::{compile, libraries, package, room, text};
use std::path::Path;
use std::process::Command;

fn install(from: &str, prefix: &Path) {
    let _ = std::fs::remove_dir_all(prefix);
    let done = Command::new(package().join("install"))
        .arg(from)
        .arg(prefix)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", text(&done));
}

/// Compiles and links a program that includes the headers in all usual ways.
fn build(flags: &[String], prefix: &Path) {
    let program = prefix.join("program");
    let mut words = vec![
        package().join("tests/c/installed.c").display().to_string(),
        "-o".into(),
        program.display().to_string(),
    ];
    words.extend(flags.iter().cloned());
    compile("cc", &words).unwrap();
    let output = Command::new(&program)
        .env("LD_LIBRARY_PATH", prefix.join("lib"))
        .output()
        .unwrap();
    assert_eq!((output.status.code(), text(&output).as_str()), (Some(0), "4.1\n"));
}

#[test]
fn headers_install_separately() {
    if libraries().is_none() {
        return;
    }
    let prefix = room().join("headers");
    install("--headers", &prefix);
    assert!(prefix.join("include/roctracer/roctracer.h").exists());
    assert!(!prefix.join("lib").exists());
    for (folder, source) in [("include/roctracer", "layout.c"), ("roctracer/include", "layout.c")] {
        let words = ["-fsyntax-only", "-Wall", "-Wextra", "-Werror"].map(String::from);
        let mut words = words.to_vec();
        words.push(format!("-I{}", prefix.join(folder).display()));
        words.push(package().join("tests/c").join(source).display().to_string());
        compile("cc", &words).unwrap();
    }
}

#[test]
fn libraries_install_under_the_manuals_paths() {
    let Some(libraries) = libraries() else { return };
    let prefix = room().join("prefix");
    install(libraries.to_str().unwrap(), &prefix);
    for path in [
        "include/roctracer/roctracer.h",
        "include/roctracer/ext/prof_protocol.h",
        "roctracer/include/roctx.h",
        "lib/libroctracer64.so.4",
        "lib/libroctx64.so.4",
        "lib/cmake/roctracer/roctracer-config.cmake",
    ] {
        assert!(prefix.join(path).exists(), "{path}");
    }
    let at = prefix.display();
    let flags = [
        format!("-I{at}/include"),
        format!("-I{at}/include/roctracer"),
        format!("-L{at}/lib"),
    ];
    let names = ["-lroctracer64", "-lroctx64"].map(String::from);
    build(&[&flags[..], &names[..]].concat(), &prefix);

    let mut pkg_config = Command::new("pkg-config");
    pkg_config.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    match pkg_config
        .args(["--cflags", "--libs", "roctracer64", "roctx64"])
        .output()
    {
        Ok(answer) => {
            assert!(answer.status.success(), "{}", text(&answer));
            let flags: Vec<String> = text(&answer).split_whitespace().map(String::from).collect();
            build(&flags, &prefix);
        }
        Err(_) => eprintln!("skipped: pkg-config is not here"),
    }
}

#[test]
fn cmake_links_the_installed_packages() {
    let Some(libraries) = libraries() else { return };
    for tool in ["cmake", "make"] {
        if Command::new(tool).arg("--version").output().is_err() {
            return eprintln!("skipped: {tool} is not here");
        }
    }
    // Installed, then moved: nothing in it may depend on its first path.
    let first = room().join("cmake-first");
    install(libraries.to_str().unwrap(), &first);
    let prefix = room().join("cmake-prefix");
    let _ = std::fs::remove_dir_all(&prefix);
    std::fs::rename(&first, &prefix).unwrap();
    let project = room().join("cmake-project");
    let _ = std::fs::remove_dir_all(&project);
    std::fs::create_dir_all(&project).unwrap();
    std::fs::copy(package().join("tests/c/installed.c"), project.join("installed.c")).unwrap();
    let lists = "cmake_minimum_required(VERSION 3.16)\nproject(installed C)\nfind_package(roctracer 4.1 REQUIRED)\n\
                 find_package(roctx 4 REQUIRED)\nadd_executable(program installed.c)\n\
                 target_link_libraries(program roctracer::roctracer64 roctx::roctx64)\n\
                 find_package(roctracer 5 QUIET)\n\
                 if(roctracer_FOUND)\n  message(FATAL_ERROR \"a version that is not here\")\nendif()\n";
    std::fs::write(project.join("CMakeLists.txt"), lists).unwrap();
    let out = project.join("out");
    let run = |command: &mut Command| {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        text(&output)
    };
    run(Command::new("cmake")
        .arg("-S")
        .arg(&project)
        .arg("-B")
        .arg(&out)
        .arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display())));
    run(Command::new("cmake").arg("--build").arg(&out));
    // The build tree's own run path leads to the libraries.
    assert_eq!(run(&mut Command::new(out.join("program"))), "4.1\n");
}
