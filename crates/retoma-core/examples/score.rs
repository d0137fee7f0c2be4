use retoma_core::flow::Flow;
fn main() {
    let t0 = std::time::Instant::now();
    let flow = match std::env::var("FLOW") {
        Ok(p) => {
            let text = std::fs::read_to_string(&p).unwrap();
            match Flow::parse(&text, &p) {
                Ok(f) => f,
                Err(e) => {
                    for f in e {
                        eprintln!("{f:?}");
                    }
                    std::process::exit(1)
                }
            }
        }
        Err(_) => Flow::vendas(),
    };
    eprintln!("flow {:?}", t0.elapsed());
    let c = &flow.classifier;
    let verbose = std::env::var("Q").is_err();
    for file in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&file).unwrap();
        let (mut n, mut strict, mut caught, mut m, mut f_out, mut f_maybe) = (0, 0, 0, 0, 0, 0);
        let t = std::time::Instant::now();
        for line in text.lines() {
            let Some((label, phrase)) = line.split_once('\t') else { continue };
            let out = c.is_opt_out(phrase);
            let maybe = !out && c.hints_at_opt_out(phrase);
            if label == "opt_out" || label == "pediu_parar" || label == "maybe" {
                n += 1;
                if out {
                    strict += 1
                }
                if out || maybe {
                    caught += 1
                } else if verbose {
                    println!("MISS\t{phrase}")
                }
                if maybe && verbose {
                    println!("maybe\t{phrase}")
                }
            } else {
                m += 1;
                if out {
                    f_out += 1;
                    if verbose {
                        println!("FALSE\t{phrase}\t{:?}", c.classify(phrase).rule)
                    }
                }
                if maybe {
                    f_maybe += 1;
                    if verbose {
                        println!("fmaybe\t{phrase}")
                    }
                }
            }
        }
        println!(
            "{file}: opt {n}: strict {strict} ({:.1}%), caught {caught} ({:.1}%); others {m}: false opt-out {f_out} ({:.2}%), false maybe {f_maybe} ({:.2}%)  {:?}/msg",
            100.0 * strict as f64 / n as f64,
            100.0 * caught as f64 / n as f64,
            100.0 * f_out as f64 / m as f64,
            100.0 * f_maybe as f64 / m as f64,
            t.elapsed() / (n + m).max(1)
        );
    }
}
