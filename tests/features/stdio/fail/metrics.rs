fn main() {
    let _ = mcp_runtime::server!().telemetry(|telemetry| telemetry.metrics_path("/metrics")).build();
}
