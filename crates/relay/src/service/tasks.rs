//! Windows: a task that starts at logon, with the rights of the user and no others.

use std::path::PathBuf;

use super::quote::for_windows;
use super::{Job, Order, ServiceError, User, Written, order, try_order};

/// How the Task Scheduler knows it.
pub(super) const NAME: &str = "Steady Relay";

/// Where the task's file is kept, by which `status` knows what is installed.
pub(super) fn path(user: &User) -> Result<PathBuf, ServiceError> {
    let folder = user.local_app_data.as_ref().ok_or(ServiceError::NoHome("LOCALAPPDATA"))?;
    Ok(folder.join("steady-relay").join("service.xml"))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The task of a job. The elements stand in the order that the scheduler's schema demands.
pub(super) fn files(job: &Job, user: &User) -> Result<Vec<Written>, ServiceError> {
    let account = escaped(user.account.as_ref().ok_or(ServiceError::NoHome("USERNAME"))?);
    let words = [job.program.to_string_lossy().into_owned()].into_iter().chain(job.arguments.iter().cloned());
    let line: Vec<_> = words.map(|word| for_windows(&word)).collect();
    // Without it a window of the console would stand open as long as the relay runs.
    let line = escaped(&format!("--headless {}", line.join(" ")));
    let text = format!(
        r#"<?xml version="1.0" encoding="UTF-16"?>
<!-- Written by `steady-relay service install`; `steady-relay service remove` deletes it. -->
<!-- {record} -->
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>Steady Relay, which keeps AI coding agents going when a service is at capacity</Description>
  </RegistrationInfo>
  <Triggers>
    <LogonTrigger>
      <Enabled>true</Enabled>
      <UserId>{account}</UserId>
    </LogonTrigger>
  </Triggers>
  <Principals>
    <Principal id="Author">
      <UserId>{account}</UserId>
      <LogonType>InteractiveToken</LogonType>
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <AllowHardTerminate>true</AllowHardTerminate>
    <StartWhenAvailable>true</StartWhenAvailable>
    <RunOnlyIfNetworkAvailable>false</RunOnlyIfNetworkAvailable>
    <AllowStartOnDemand>true</AllowStartOnDemand>
    <Enabled>true</Enabled>
    <Hidden>false</Hidden>
    <RunOnlyIfIdle>false</RunOnlyIfIdle>
    <WakeToRun>false</WakeToRun>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <Priority>5</Priority>
    <RestartOnFailure>
      <Interval>PT1M</Interval>
      <Count>999</Count>
    </RestartOnFailure>
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>conhost.exe</Command>
      <Arguments>{line}</Arguments>
    </Exec>
  </Actions>
</Task>
"#,
        record = job.record().line(),
    );
    Ok(vec![Written { path: path(user)?, text, is_utf16: true }])
}

/// Registers the task and starts it; one that runs is ended first.
pub(super) fn install_orders(user: &User) -> Result<Vec<Order>, ServiceError> {
    let path = path(user)?.to_string_lossy().into_owned();
    Ok(vec![
        try_order(&["schtasks", "/End", "/TN", NAME]),
        order(&["schtasks", "/Create", "/TN", NAME, "/XML", &path, "/F"]),
        order(&["schtasks", "/Run", "/TN", NAME]),
    ])
}

pub(super) fn start_orders() -> Vec<Order> {
    vec![order(&["schtasks", "/Run", "/TN", NAME])]
}

pub(super) fn stop_orders() -> Vec<Order> {
    vec![order(&["schtasks", "/End", "/TN", NAME])]
}

pub(super) fn remove_orders() -> Vec<Order> {
    vec![
        try_order(&["schtasks", "/End", "/TN", NAME]),
        try_order(&["schtasks", "/Delete", "/TN", NAME, "/F"]),
    ]
}

pub(super) fn status_order() -> Order {
    order(&["schtasks", "/Query", "/TN", NAME])
}

#[cfg(test)]
mod tests {
    use super::super::tests::{job, user};
    use super::*;

    #[test]
    fn the_task_is_xml_that_says_what_to_run_and_as_whom() {
        let job = Job { program: r"C:\Program Files\A & B\steady-relay.exe".into(), ..job() };
        let [file] = files(&job, &user()).unwrap().try_into().unwrap();
        assert!(file.is_utf16);
        assert_eq!(super::super::Record::of(&file.text), Some(job.record()));
        let task = roxmltree::Document::parse(&file.text).unwrap();
        let text = |name: &str| {
            task.descendants().find(|node| node.tag_name().name() == name).and_then(|node| node.text())
        };
        assert_eq!(text("UserId"), Some("PC\\me & co"));
        assert_eq!(text("RunLevel"), Some("LeastPrivilege"));
        assert_eq!(text("ExecutionTimeLimit"), Some("PT0S"));
        assert_eq!(text("Command"), Some("conhost.exe"));
        let line = r#"--headless "C:\Program Files\A & B\steady-relay.exe" "serve" "--upstream=https://h/a%20b?$x=\"1\"""#;
        assert_eq!(text("Arguments"), Some(line));
        let namespace = task.root_element().tag_name().namespace();
        assert_eq!(namespace, Some("http://schemas.microsoft.com/windows/2004/02/mit/task"));
    }

    #[test]
    fn without_a_name_of_the_user_there_is_no_task() {
        let nobody = User { account: None, ..user() };
        assert!(matches!(files(&job(), &nobody), Err(ServiceError::NoHome("USERNAME"))));
    }
}
